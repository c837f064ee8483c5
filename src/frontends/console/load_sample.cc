// SPDX-License-Identifier: Apache-2.0
#include "console/load_sample.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/system_files.h"
#include "observe/process_metrics.h"

namespace nereid::console {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

// What was added to a counter that starts again at 0 with each load of its model.
uint64_t Growth(uint64_t before, uint64_t now) { return now >= before ? now - before : now; }

uint64_t Nanoseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1'000;
}

float Mebibytes(uint64_t bytes) {
  return static_cast<float>(static_cast<double>(bytes) / (1024.0 * 1024.0));
}

}  // namespace

MachineReading ReadMachine() {
  MachineReading reading;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    reading.process_cpu_ns = Nanoseconds(usage.ru_utime) + Nanoseconds(usage.ru_stime);
  }
  const base::SystemFiles files;
  const std::string status = files.Text("/proc/self/stat").value_or("");
  if (const auto process = observe::ParseProcessStatus(status)) {
    reading.process_bytes =
        process->resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  reading.cpu = observe::ParseCpuTimes(files.Text("/proc/stat").value_or(""));
  reading.memory = observe::ParseMemory(files.Text("/proc/meminfo").value_or(""));
  return reading;
}

float QuantileMs(const core::DurationBuckets& counts, double quantile) {
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  if (total == 0) return kUnknown;
  const double wanted = quantile * static_cast<double>(total);
  double below = 0;
  double lower_ns = 0;
  for (size_t i = 0; i < core::kDurationBoundsNs.size(); ++i) {
    const auto upper_ns = static_cast<double>(core::kDurationBoundsNs[i]);
    const auto count = static_cast<double>(counts[i]);
    if (count > 0 && below + count >= wanted) {
      const double part = std::max(0.0, wanted - below) / count;
      return static_cast<float>((lower_ns + part * (upper_ns - lower_ns)) / 1e6);
    }
    below += count;
    lower_ns = upper_ns;
  }
  // The last bucket has no upper bound.
  return static_cast<float>(lower_ns / 1e6);
}

std::optional<LoadSample> LoadMeter::Next(const LoadReading& reading) {
  const bool is_first = last_ns_ == 0;
  const uint64_t passed_ns = Growth(last_ns_, reading.now_ns);
  const double seconds = std::max(1e-3, static_cast<double>(passed_ns) / 1e9);
  LoadSample sample;
  sample.time_s = reading.time_s;
  MeasureModels(reading, seconds, sample);
  MeasureMachine(reading, seconds, sample);
  last_ns_ = reading.now_ns;
  process_cpu_ns_ = reading.machine.process_cpu_ns;
  cpu_ = reading.machine.cpu;
  if (is_first) return std::nullopt;
  return sample;
}

// A model that was loaded since the last reading has begun at 0; one that was unloaded is
// forgotten.
void LoadMeter::MeasureModels(const LoadReading& reading, double seconds, LoadSample& sample) {
  ++readings_;
  core::LoadCounts sum;
  for (const service::ModelLoad& model : reading.models) {
    const core::LoadCounts& now = model.counts;
    Known& known = models_[model.identity];
    const core::LoadCounts& before = known.counts;
    sum.successes += Growth(before.successes, now.successes);
    sum.failures += Growth(before.failures, now.failures);
    sum.pending += now.pending;
    for (size_t i = 0; i < sum.request_buckets.size(); ++i) {
      sum.request_buckets[i] += Growth(before.request_buckets[i], now.request_buckets[i]);
    }
    known = {now, readings_};
  }
  if (models_.size() > reading.models.size()) {
    std::erase_if(models_, [this](const auto& one) { return one.second.reading != readings_; });
  }
  sample.requests = static_cast<float>(static_cast<double>(sum.successes) / seconds);
  sample.errors = static_cast<float>(static_cast<double>(sum.failures) / seconds);
  sample.queued = static_cast<float>(sum.pending);
  sample.p50_ms = QuantileMs(sum.request_buckets, 0.5);
  sample.p99_ms = QuantileMs(sum.request_buckets, 0.99);
}

void LoadMeter::MeasureMachine(const LoadReading& reading, double seconds,
                               LoadSample& sample) const {
  const MachineReading& now = reading.machine;
  const uint64_t used_ns = Growth(process_cpu_ns_, now.process_cpu_ns);
  sample.process_cpus = static_cast<float>(static_cast<double>(used_ns) / 1e9 / seconds);
  sample.process_mib = Mebibytes(now.process_bytes);
  sample.machine_cpu = kUnknown;
  if (cpu_ && now.cpu) {
    const auto busy = static_cast<double>(Growth(cpu_->busy, now.cpu->busy));
    const auto idle = static_cast<double>(Growth(cpu_->idle, now.cpu->idle));
    if (busy + idle > 0) sample.machine_cpu = static_cast<float>(busy / (busy + idle));
  }
  sample.machine_mib = now.memory ? Mebibytes(now.memory->used) : kUnknown;
  sample.gpu_use.fill(kUnknown);
  sample.gpu_mib.fill(kUnknown);
  for (size_t i = 0; i < std::min(kMaxGpus, now.gpus.size()); ++i) {
    const observe::GpuReading& gpu = now.gpus[i];
    if (gpu.utilization) sample.gpu_use[i] = static_cast<float>(*gpu.utilization);
    if (gpu.used_bytes) sample.gpu_mib[i] = Mebibytes(static_cast<uint64_t>(*gpu.used_bytes));
  }
}

}  // namespace nereid::console
