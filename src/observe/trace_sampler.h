// SPDX-License-Identifier: Apache-2.0
// One set of trace settings in force, and what was sampled under it. Private to this module.
#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "observe/trace.h"
#include "observe/trace_output.h"

namespace nereid::observe {

// Thread-safe. What it still holds when it goes is written then.
class TraceSampler {
 public:
  TraceSampler(const TraceSettings& settings, TraceMode mode, std::shared_ptr<TraceOutput> output);
  ~TraceSampler();

  // As they were set; `count` is what is left of it.
  TraceSettings settings() const;
  TraceMode mode() const { return mode_; }
  TraceOutput& output() const { return *output_; }

  // Why nothing can be sampled; empty when something can.
  const char* WhyInvalid() const;
  bool is_on() const;

  // Whether this request, one more, is to be traced. `is_forced`: its client traces it.
  bool Sample(bool is_forced);
  // The records of one sampled request.
  void Collect(std::string records);

 private:
  const TraceSettings settings_;  // but for count
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
