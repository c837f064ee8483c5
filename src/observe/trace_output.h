// SPDX-License-Identifier: Apache-2.0
// The outputs of finished traces. Private to this module.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/thread.h"
#include "observe/otlp_exporter.h"
#include "observe/recent_traces.h"

namespace nereid::observe {

// One trace file, which is a growing JSON array, and the files <path>.0, <path>.1, ... beside it,
// each written in one piece. Writes on a thread of its own. Thread-safe.
class TraceFile {
 public:
  explicit TraceFile(std::string path) : path_(std::move(path)) {}
  // Writes the remaining records and ends the array.
  ~TraceFile();

  const std::string& path() const { return path_; }
  // `records` are JSON values separated by commas.
  void Append(std::string records) { Add({std::move(records), false}); }
  void WriteIndexed(std::string records) { Add({std::move(records), true}); }

 private:
  // The records of one Append or WriteIndexed.
  struct Piece {
    std::string records;
    bool is_indexed = false;
  };

  void Add(Piece piece);
  void Run();
  void Write(const Piece& piece);

  const std::string path_;
  uint64_t index_ = 0;  // index_, is_open_ and has_failed_ are confined to the thread
  bool is_open_ = false;
  bool has_failed_ = false;
  base::Mutex mutex_;
  base::CondVar wake_;
  std::deque<Piece> queue_ NEREID_GUARDED_BY(mutex_);
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_started_ NEREID_GUARDED_BY(mutex_) = false;
  base::Thread thread_;  // started with the first piece
};

// The outputs that all traces of a server share.
class TraceOutput {
 public:
  explicit TraceOutput(std::string path) : file(std::move(path)) {}

  uint64_t NextId() { return next_id_.fetch_add(1); }

  TraceFile file;
  RecentTraces recent;
  std::unique_ptr<OtlpExporter> exporter;  // null except in OpenTelemetry mode

 private:
  std::atomic<uint64_t> next_id_{1};  // 0 means "no parent"
};

}  // namespace nereid::observe
