// SPDX-License-Identifier: Apache-2.0
// What the console's charts show of one second: the load of the server as numbers, computed from
// two readings of the models' statistics and of the machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/statistics.h"
#include "observe/cpu_metrics.h"
#include "observe/gpu_metrics.h"
#include "service/service.h"

namespace nereid::console {

// The most GPUs of which the charts keep a line each.
inline constexpr size_t kMaxGpus = 8;

// One second. What is not known, such as the latency where there was no request, is NaN.
struct LoadSample {
  int64_t time_s = 0;  // since 1970
  float requests = 0;  // successful requests per second
  float errors = 0;    // failed requests per second
  float p50_ms = 0;    // of the successful requests of this second
  float p99_ms = 0;
  float queued = 0;                       // requests that wait, at this moment
  float process_cpus = 0;                 // how many CPUs the server's process keeps busy
  float machine_cpu = 0;                  // the busy part of all CPUs, from 0 to 1
  float process_mib = 0;                  // resident
  float machine_mib = 0;                  // memory that is not available
  std::array<float, kMaxGpus> gpu_use{};  // from 0 to 1
  std::array<float, kMaxGpus> gpu_mib{};  // memory in use
};

// What the machine says at one moment.
struct MachineReading {
  uint64_t process_cpu_ns = 0;  // user and system time since the process was started
  uint64_t process_bytes = 0;   // resident
  std::optional<observe::CpuTimes> cpu;
  std::optional<observe::MemoryBytes> memory;
  std::vector<observe::GpuReading> gpus;
};
// Reads /proc. The GPUs are left to the caller.
MachineReading ReadMachine();

// Everything that a sample is made of, at one moment.
struct LoadReading {
  uint64_t now_ns = 0;  // monotonic
  int64_t time_s = 0;   // since 1970
  std::vector<service::ModelLoad> models;
  MachineReading machine;
};

// Returns the duration, in ms, below which the part `quantile` of the counted durations is, as far
// as their buckets tell: values are taken to be spread evenly in a bucket. NaN without any count.
float QuantileMs(const core::DurationBuckets& counts, double quantile);

// Makes samples from consecutive readings. Thread-compatible.
class LoadMeter {
 public:
  // Returns nothing for the first reading, which has none before it.
  std::optional<LoadSample> Next(const LoadReading& reading);

 private:
  // What was counted of a version, and in which reading.
  struct Known {
    core::LoadCounts counts;
    uint64_t reading = 0;
  };
  // By identity. Most stay from reading to reading, so they are changed in place.
  using Models = std::unordered_map<const void*, Known>;

  void MeasureModels(const LoadReading& reading, double seconds, LoadSample& sample);
  void MeasureMachine(const LoadReading& reading, double seconds, LoadSample& sample) const;

  uint64_t last_ns_ = 0;
  uint64_t readings_ = 0;
  Models models_;
  uint64_t process_cpu_ns_ = 0;
  std::optional<observe::CpuTimes> cpu_;
};

}  // namespace nereid::console
