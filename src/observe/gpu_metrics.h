// SPDX-License-Identifier: Apache-2.0
// What the GPUs say about themselves, as nv_gpu_* families, asked from NVML. The library comes with
// the driver and is opened at run time; without it, or without a GPU, there is nothing to print.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/shared_library.h"
#include "base/status.h"
#include "observe/metrics_page.h"

namespace nereid::observe {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// Thread-safe.
class GpuMetrics {
 public:
  // Unavailable without the library or a GPU. Values are read anew when those at hand are older
  // than half of `interval`.
  static base::Result<std::unique_ptr<GpuMetrics>> Open(const std::string& library,
                                                        std::chrono::milliseconds interval);
  ~GpuMetrics();

  size_t gpu_count() const;
  void AddTo(MetricsPage& page);

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
  std::vector<Gpu> gpus_;  // their number is constant once open
  base::Mutex mutex_;
  uint64_t read_at_ns_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::observe
