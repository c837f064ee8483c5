// SPDX-License-Identifier: Apache-2.0
// The nv_cpu_* metric families: how busy the machine's CPUs are and how much of its memory is in
// use.
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

// The time that all CPUs together have spent since boot, in the kernel's ticks.
struct CpuTimes {
  uint64_t busy = 0;
  uint64_t idle = 0;
};
// Parses the text of /proc/stat. Returns nothing for any other text.
std::optional<CpuTimes> ParseCpuTimes(std::string_view stat);

// The memory of the machine, in bytes.
struct MemoryBytes {
  uint64_t total = 0;
  uint64_t used = 0;  // total less available
};
// Parses the text of /proc/meminfo. Returns nothing for any other text.
std::optional<MemoryBytes> ParseMemory(std::string_view meminfo);

// Reads the values and adds them to a page. Thread-safe.
class CpuMetrics {
 public:
  // Utilisation is measured between two readings that are at least half of `interval` apart.
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
