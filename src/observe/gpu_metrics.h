// SPDX-License-Identifier: Apache-2.0
// The nv_gpu_* metric families, read from NVML. The library comes with the driver and is opened at
// run time; without it, or without a GPU, nothing is printed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/shared_library.h"
#include "base/status.h"
#include "observe/metrics_page.h"

namespace nereid::observe {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// What a GPU says of itself at one moment. Values that it does not report are absent.
struct GpuReading {
  std::string uuid;
  std::optional<double> utilization;  // from 0 to 1
  std::optional<double> total_bytes, used_bytes;
};

// The GPUs of the machine. Thread-safe.
class GpuMetrics {
 public:
  // Returns Unavailable without the library or a GPU. Values are read again when the last ones are
  // older than half of `interval`.
  static base::Result<std::unique_ptr<GpuMetrics>> Open(const std::string& library,
                                                        std::chrono::milliseconds interval);
  ~GpuMetrics();

  size_t gpu_count() const;
  void AddTo(MetricsPage& page);
  // Returns the same values for other places than the metrics page, in the driver's order.
  std::vector<GpuReading> Read();

 private:
  struct Functions;
  struct Gpu;
  GpuMetrics(std::unique_ptr<base::SharedLibrary> library, std::unique_ptr<Functions> functions,
             std::chrono::milliseconds interval);

  base::Status FindGpus();
  void Refresh() NEREID_REQUIRES(mutex_);

  const std::unique_ptr<base::SharedLibrary> library_;
  const std::unique_ptr<Functions> functions_;
  const uint64_t least_age_ns_;
  bool is_initialized_ = false;
  std::vector<Gpu> gpus_;  // the number of GPUs is constant once open
  base::Mutex mutex_;
  uint64_t read_at_ns_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::observe
