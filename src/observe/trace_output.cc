// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.h"

namespace nereid::observe {
namespace {

// Returns false, with errno set, if not everything could be written.
bool WriteFile(const std::string& path, const char* mode, std::string_view first,
               std::string_view text, std::string_view last) {
  std::FILE* const file = std::fopen(path.c_str(), mode);
  if (file == nullptr) return false;
  bool is_good = true;
  for (const std::string_view part : {first, text, last}) {
    is_good = is_good && std::fwrite(part.data(), 1, part.size(), file) == part.size();
  }
  return std::fclose(file) == 0 && is_good;
}

}  // namespace

TraceFile::~TraceFile() {
  {
    base::MutexLock lock(mutex_);
    is_ending_ = true;
    wake_.NotifyOne();
  }
  thread_.Join();
  if (is_open_) WriteFile(path_, "a", "]", "", "");
}

void TraceFile::Add(Piece piece) {
  base::MutexLock lock(mutex_);
  queue_.push_back(std::move(piece));
  if (!is_started_) {
    is_started_ = true;
    thread_ = base::Thread("trace_file", [this] { Run(); });
  }
  wake_.NotifyOne();
}

void TraceFile::Run() {
  while (true) {
    Piece piece;
    {
      base::MutexLock lock(mutex_);
      while (queue_.empty() && !is_ending_) wake_.Wait(mutex_);
      if (queue_.empty()) return;
      piece = std::move(queue_.front());
      queue_.pop_front();
    }
    Write(piece);
  }
}

void TraceFile::Write(const Piece& piece) {
  const bool is_first = !is_open_;
  const bool is_written =
      piece.is_indexed
          ? WriteFile(path_ + "." + std::to_string(index_++), "w", "[", piece.records, "]")
          : WriteFile(path_, is_first ? "w" : "a", is_first ? "[" : ",", piece.records, "");
  if (!piece.is_indexed && is_written) is_open_ = true;
  if (!is_written && !std::exchange(has_failed_, true)) {
    NEREID_LOG(kError, "failed creating trace file '{}': {}", path_, std::strerror(errno));
  }
}

}  // namespace nereid::observe
