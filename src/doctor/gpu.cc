// SPDX-License-Identifier: Apache-2.0
#include "doctor/gpu.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "doctor/child.h"
#include "doctor/units.h"
#include "memory/cuda_driver.h"

namespace nereid::doctor {
namespace {

constexpr const char* kDriver = "/proc/driver/nvidia";

// Returns the number of NVIDIA GPUs on the PCI bus, with or without a driver.
size_t CountOnBus(const base::SystemFiles& files) {
  constexpr const char* kBus = "/sys/bus/pci/devices";
  size_t count = 0;
  for (const std::string& name : files.Names(kBus)) {
    const std::string device = fmt::format("{}/{}", kBus, name);
    // Class 03 is that of displays, to which processors without one belong as well.
    if (files.Text(device + "/vendor") == "0x10de" &&
        files.Text(device + "/class").value_or("").starts_with("0x03")) {
      ++count;
    }
  }
  return count;
}

// Returns "535.104.05" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat ...".
std::string DriverVersion(const base::SystemFiles& files) {
  const std::string text =
      files.Field(fmt::format("{}/version", kDriver), "NVRM version").value_or("");
  for (const std::string_view word : base::Words(text)) {
    const bool is_number = base::ToNumber(word.substr(0, word.find('.'))).has_value();
    if (is_number && word.find('.') != std::string_view::npos) return std::string(word);
  }
  return "of unknown version";
}

void NameDevices(const base::SystemFiles& files, Report& report) {
  size_t number = 0;
  for (const std::string& name : files.Names(fmt::format("{}/gpus", kDriver))) {
    const std::string path = fmt::format("{}/gpus/{}/information", kDriver, name);
    const auto field = [&](const char* key) { return files.Field(path, key).value_or("?"); };
    report.Ok(fmt::format("gpu.device{}", number++),
              fmt::format("{} at {}", field("Model"), field("Bus Location")));
  }
}

// GPUs in MIG mode are used through their instances only.
void ExamineMig(const base::SystemFiles& files, Report& report) {
  const std::string folder = fmt::format("{}/capabilities", kDriver);
  for (const std::string& gpu : files.Names(folder)) {
    const std::string mig = fmt::format("{}/{}/mig", folder, gpu);
    const auto instances = std::ranges::count_if(
        files.Names(mig), [](const std::string& name) { return name.starts_with("gi"); });
    if (instances == 0) continue;
    report.Note(
        "gpu.mig", fmt::format("{} is split into {} MIG instances", gpu, instances),
        "CUDA shows a process one of them: choose it with CUDA_VISIBLE_DEVICES=MIG-..., and "
        "run one server for each.");
  }
}

// The reasons why a driver that the kernel has does not work for this process.
std::string AdviceFor(const base::SystemFiles& files) {
  if (!files.Exists("/dev/nvidiactl")) {
    return "The devices are not visible here: start the container with --gpus all (docker) or "
           "--device nvidia.com/gpu=all (podman); for the service, set DeviceAllow= and "
           "PrivateDevices=no.";
  }
  return "Install the driver's library (libcuda.so.1) of the same version as its kernel module, or "
         "restart after an upgrade; nvidia-smi tells more.";
}

}  // namespace

base::Result<std::vector<std::string>> TryCudaDriver() {
  constexpr std::chrono::seconds kLimit{30};
  return TryInChild(
      [] {
        std::vector<std::string> gpus;
        const auto driver = memory::CudaDriver::Open();
        for (int i = 0; driver != nullptr && i < driver->device_count(); ++i) {
          const auto capability = driver->ComputeCapability(i);
          const auto memory = driver->ReadMemory(i);
          gpus.push_back(
              capability.ok() && memory.ok()
                  ? fmt::format("GPU {}: compute capability {:.1f}, {} of memory, {} free", i,
                                *capability, BytesText(memory->total), BytesText(memory->free))
                  : fmt::format(
                        "GPU {}: {}", i,
                        (capability.ok() ? memory.status() : capability.status()).message()));
        }
        return gpus;
      },
      kLimit);
}

void ExamineGpus(const base::SystemFiles& files,
                 const std::function<base::Result<std::vector<std::string>>()>& try_driver,
                 Report& report) {
  const size_t on_bus = CountOnBus(files);
  const bool has_module = files.Exists(kDriver);
  const base::Result<std::vector<std::string>> usable = try_driver();
  if (!usable.ok()) {
    report.Problem("gpu.driver",
                   fmt::format("the CUDA driver does not start: {}", usable.status().message()),
                   AdviceFor(files));
    return;
  }
  if (usable->empty() && on_bus == 0 && !has_module) {
    report.Ok("gpu.driver", "no NVIDIA GPU: models run on the processor");
    return;
  }
  if (has_module) {
    const std::string version = DriverVersion(files);
    report.Ok("gpu.module", fmt::format("NVIDIA driver {}", version));
    report.versions.emplace_back("NVIDIA driver", version);
    NameDevices(files, report);
    ExamineMig(files, report);
  } else if (on_bus > 0) {
    report.Problem("gpu.module", fmt::format("{} NVIDIA GPUs, but no driver is loaded", on_bus),
                   "Install NVIDIA's driver; without it, models run on the processor.");
    return;
  }
  if (usable->empty()) {
    report.Problem("gpu.driver", "CUDA finds no GPU that this process may use", AdviceFor(files));
    return;
  }
  for (size_t i = 0; i < usable->size(); ++i) {
    report.Ok(fmt::format("gpu.cuda{}", i), (*usable)[i]);
  }
}

}  // namespace nereid::doctor
