// SPDX-License-Identifier: Apache-2.0
// These declarations of NVML follow its documented interface, version 12.
#include "observe/gpu_metrics.h"

#include <array>
#include <optional>

#include "base/clock.h"

namespace nereid::observe {

namespace {

constexpr int kSuccess = 0;
using Device = void*;

// NVML's nvmlUtilization_t.
struct Utilization {
  unsigned gpu = 0;
  unsigned memory = 0;
};
// NVML's nvmlMemory_t.
struct Memory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

}  // namespace

struct GpuMetrics::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power_usage)(Device, unsigned*) = nullptr;       // mW
  int (*power_limit)(Device, unsigned*) = nullptr;       // mW
  int (*energy)(Device, unsigned long long*) = nullptr;  // mJ since the driver was loaded
};

struct GpuMetrics::Gpu {
  Device device = nullptr;
  std::string uuid;
  std::string labels;
  // Values that a device does not report stay absent.
  std::optional<double> utilization, total_bytes, used_bytes, power_usage, power_limit;
  std::optional<unsigned long long> first_energy;
  double energy = 0;
};

base::Result<std::unique_ptr<GpuMetrics>> GpuMetrics::Open(const std::string& library,
                                                           std::chrono::milliseconds interval) {
  auto opened = base::SharedLibrary::Open(library);
  if (!opened.ok()) return base::UnavailableError(std::string(opened.status().message()));
  const base::SharedLibrary& nvml = **opened;
  auto functions = std::make_unique<Functions>();
  const auto find = [&nvml](auto& function, const char* name) {
    function = nvml.Find<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
    return function != nullptr;
  };
  const bool is_complete = find(functions->init, "nvmlInit_v2") &&
                           find(functions->shutdown, "nvmlShutdown") &&
                           find(functions->count, "nvmlDeviceGetCount_v2") &&
                           find(functions->device, "nvmlDeviceGetHandleByIndex_v2") &&
                           find(functions->uuid, "nvmlDeviceGetUUID") &&
                           find(functions->utilization, "nvmlDeviceGetUtilizationRates") &&
                           find(functions->memory, "nvmlDeviceGetMemoryInfo") &&
                           find(functions->power_usage, "nvmlDeviceGetPowerUsage") &&
                           find(functions->power_limit, "nvmlDeviceGetPowerManagementLimit") &&
                           find(functions->energy, "nvmlDeviceGetTotalEnergyConsumption");
  if (!is_complete) return base::UnavailableError(library + " is not the library expected");
  std::unique_ptr<GpuMetrics> metrics(
      new GpuMetrics(std::move(*opened), std::move(functions), interval));
  NEREID_RETURN_IF_ERROR(metrics->FindGpus());
  return metrics;
}

GpuMetrics::GpuMetrics(std::unique_ptr<base::SharedLibrary> library,
                       std::unique_ptr<Functions> functions, std::chrono::milliseconds interval)
    : library_(std::move(library)),
      functions_(std::move(functions)),
      least_age_ns_(static_cast<uint64_t>(interval.count()) * 500'000) {}

GpuMetrics::~GpuMetrics() {
  if (is_initialized_) functions_->shutdown();
}

size_t GpuMetrics::gpu_count() const { return gpus_.size(); }

base::Status GpuMetrics::FindGpus() {
  if (functions_->init() != kSuccess) return base::UnavailableError("NVML finds no driver");
  is_initialized_ = true;
  unsigned count = 0;
  if (functions_->count(&count) != kSuccess || count == 0) {
    return base::UnavailableError("NVML finds no GPU");
  }
  for (unsigned i = 0; i < count; ++i) {
    Gpu gpu;
    std::array<char, 96> uuid{};
    if (functions_->device(i, &gpu.device) != kSuccess ||
        functions_->uuid(gpu.device, uuid.data(), uuid.size() - 1) != kSuccess) {
      continue;
    }
    gpu.uuid = uuid.data();
    gpu.labels = RenderLabels({{"gpu_uuid", gpu.uuid}});
    gpus_.push_back(std::move(gpu));
  }
  base::MutexLock lock(mutex_);
  Refresh();
  return base::OkStatus();
}

void GpuMetrics::Refresh() {
  read_at_ns_ = base::NowNs();
  for (Gpu& gpu : gpus_) {
    gpu.utilization = gpu.total_bytes = gpu.used_bytes = gpu.power_usage = gpu.power_limit = {};
    if (Utilization rates; functions_->utilization(gpu.device, &rates) == kSuccess) {
      gpu.utilization = rates.gpu / 100.0;
    }
    if (Memory memory; functions_->memory(gpu.device, &memory) == kSuccess) {
      gpu.total_bytes = static_cast<double>(memory.total);
      gpu.used_bytes = static_cast<double>(memory.used);
    }
    if (unsigned mw = 0; functions_->power_usage(gpu.device, &mw) == kSuccess) {
      gpu.power_usage = mw / 1000.0;
    }
    if (unsigned mw = 0; functions_->power_limit(gpu.device, &mw) == kSuccess) {
      gpu.power_limit = mw / 1000.0;
    }
    if (unsigned long long mj = 0; functions_->energy(gpu.device, &mj) == kSuccess) {
      if (!gpu.first_energy) gpu.first_energy = mj;
      if (mj >= *gpu.first_energy)
        gpu.energy = static_cast<double>(mj - *gpu.first_energy) / 1000.0;
    }
  }
}

void GpuMetrics::AddTo(MetricsPage& page) {
  using Kind = MetricsPage::Kind;
  base::MutexLock lock(mutex_);
  if (base::NowNs() - read_at_ns_ >= least_age_ns_) Refresh();
  const auto add = [&](const char* name, const char* help, std::optional<double> Gpu::* value) {
    page.StartFamily(name, help, Kind::kGauge);
    for (const Gpu& gpu : gpus_) {
      if (gpu.*value) page.Add(gpu.labels, *(gpu.*value));
    }
  };
  add("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", &Gpu::utilization);
  add("nv_gpu_memory_total_bytes", "GPU total memory, in bytes", &Gpu::total_bytes);
  add("nv_gpu_memory_used_bytes", "GPU used memory, in bytes", &Gpu::used_bytes);
  add("nv_gpu_power_usage", "GPU power usage in watts", &Gpu::power_usage);
  add("nv_gpu_power_limit", "GPU power management limit in watts", &Gpu::power_limit);
  page.StartFamily("nv_energy_consumption",
                   "GPU energy consumption in joules since the Triton Server started",
                   Kind::kCounter);
  for (const Gpu& gpu : gpus_) {
    if (gpu.first_energy) page.Add(gpu.labels, gpu.energy);
  }
}

std::vector<GpuReading> GpuMetrics::Read() {
  base::MutexLock lock(mutex_);
  if (base::NowNs() - read_at_ns_ >= least_age_ns_) Refresh();
  std::vector<GpuReading> readings;
  for (const Gpu& gpu : gpus_) {
    readings.push_back({gpu.uuid, gpu.utilization, gpu.total_bytes, gpu.used_bytes});
  }
  return readings;
}

}  // namespace nereid::observe
