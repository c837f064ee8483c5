// SPDX-License-Identifier: Apache-2.0
// How busy the machine's CPUs are and how much of its memory is in use, as nv_cpu_* families.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "observe/metrics_page.h"

namespace nereid::observe {

// Time that all CPUs together have spent since the machine was started, in the kernel's ticks.
struct CpuTimes {
  uint64_t busy = 0;
  uint64_t idle = 0;
};
// From the text of /proc/stat; nothing when it is not that.
std::optional<CpuTimes> ParseCpuTimes(std::string_view stat);

// The memory of the machine, in bytes.
struct MemoryBytes {
  uint64_t total = 0;
  uint64_t used = 0;  // total less what is available
};
// From the text of /proc/meminfo; the same.
std::optional<MemoryBytes> ParseMemory(std::string_view meminfo);

// Thread-safe.
class CpuMetrics {
 public:
  // Utilisation is that of the time between two readings, which lie at least half of `interval`
  // apart.
  explicit CpuMetrics(std::chrono::milliseconds interval);

  void AddTo(MetricsPage& page);

 private:
  void Refresh() NEREID_REQUIRES(mutex_);

  const uint64_t least_age_ns_;
  base::Mutex mutex_;
  uint64_t read_at_ns_ NEREID_GUARDED_BY(mutex_) = 0;
  CpuTimes times_ NEREID_GUARDED_BY(mutex_);
  double utilization_ NEREID_GUARDED_BY(mutex_) = 0;
  MemoryBytes memory_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::observe
