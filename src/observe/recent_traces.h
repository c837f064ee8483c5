// SPDX-License-Identifier: Apache-2.0
// The last traces, kept in bounded memory for people who look at the server in a browser. What is
// kept are the times; tensors go only where the server was told to write them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace nereid::observe {

// A moment of a request.
struct TracedMoment {
  std::string name;  // "REQUEST_START"
  uint64_t ns = 0;   // monotonic
};

// One request within a trace: the client's, or a step of an ensemble.
struct TracedRequest {
  uint64_t id = 0;
  uint64_t parent_id = 0;  // 0: none
  std::string model;       // empty for the client's, if it never reached a model
  int64_t version = 0;
  std::string request_id;
  std::vector<TracedMoment> moments;  // as they were reported
};

// One trace. Immutable once it is kept.
struct RecentTrace {
  uint64_t id = 0;  // of the client's request
  int64_t unix_ms = 0;
  std::vector<TracedRequest> requests;  // the client's first
  bool is_cut = false;                  // more was reported than is kept
};

// Collects one trace for RecentTraces. Thread-compatible.
class RecentTraceBuilder {
 public:
  // A decoupled model may report any number of moments.
  static constexpr size_t kMaxMoments = 256;
  static constexpr size_t kMaxText = 128;

  // Describes the request `id`. A later call replaces an earlier one.
  void Describe(uint64_t id, uint64_t parent_id, std::string_view model, int64_t version,
                std::string_view request_id);
  void Add(uint64_t id, std::string_view name, uint64_t ns);
  // Returns the trace of the request `root_id`; the builder is empty afterwards.
  RecentTrace Take(uint64_t root_id, int64_t unix_ms);

 private:
  TracedRequest* Find(uint64_t id);

  RecentTrace trace_;
  size_t count_ = 0;
};

// Thread-safe.
class RecentTraces {
 public:
  // A trace takes at most about 100 KB, and seldom more than 3.
  static constexpr size_t kMaxTraces = 100;

  // Keeps traces from now on.
  void Start() { keeps_.store(true); }
  bool keeps() const { return keeps_.load(std::memory_order_relaxed); }  // lone setting

  // Keeps a trace, instead of the oldest if there is no room.
  void Add(RecentTrace trace);
  // The newest first.
  std::vector<std::shared_ptr<const RecentTrace>> All() const;
  // Null if it is not kept, or no more.
  std::shared_ptr<const RecentTrace> Find(uint64_t id) const;

 private:
  std::atomic<bool> keeps_{false};
  mutable base::Mutex mutex_;
  std::deque<std::shared_ptr<const RecentTrace>> traces_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::observe
