// SPDX-License-Identifier: Apache-2.0
// One set of trace settings and the traces sampled under it. Private to this module.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "observe/trace.h"
#include "observe/trace_output.h"

namespace nereid::observe {

// Decides which requests are traced and collects their records. Thread-safe. The destructor writes
// the remaining records.
class TraceSampler {
 public:
  TraceSampler(const TraceSettings& settings, TraceMode mode, std::shared_ptr<TraceOutput> output);
  ~TraceSampler();

  // Returns the settings, with the remaining `count`.
  TraceSettings settings() const;
  TraceMode mode() const { return mode_; }
  TraceOutput& output() const { return *output_; }

  // Returns why nothing can be sampled, or an empty text.
  const char* WhyInvalid() const;
  bool is_on() const;

  // Counts one more request and returns whether to trace it. `is_forced`: the client requested the
  // trace.
  bool Sample(bool is_forced);
  // Adds the records of one sampled request.
  void Collect(std::string_view records);

 private:
  const TraceSettings settings_;  // except for count
  const TraceMode mode_;
  const std::shared_ptr<TraceOutput> output_;
  mutable base::Mutex mutex_;
  int32_t count_ NEREID_GUARDED_BY(mutex_);
  uint64_t seen_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t sampled_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t collected_ NEREID_GUARDED_BY(mutex_) = 0;
  std::string pending_ NEREID_GUARDED_BY(mutex_);
  uint32_t pending_count_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::observe
