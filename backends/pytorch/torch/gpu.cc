// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/gpu.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <map>
#include <string>

namespace nereid::pytorch {
namespace {

// Opens PyTorch's library for GPUs, which lies beside the one for the CPU; it makes itself known to
// that one. Never closed.
bool OpenLibrary() {
  Dl_info place;
  if (::dladdr(reinterpret_cast<void*>(&at::detail::getCUDAHooks), &place) == 0) {
    return false;
  }
  const std::string path(place.dli_fname);
  const std::string beside = path.substr(0, path.rfind('/') + 1) + "libtorch_cuda.so";
  return ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
}

}  // namespace

// The library is only opened where a driver is, because it is large. It must be open before PyTorch
// first asks for its GPUs, as the response to that is kept.
int GpuCount() {
  static const bool is_open =
      ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr && OpenLibrary();
  return is_open ? at::detail::getCUDAHooks().deviceCount() : 0;
}

std::optional<c10::Device> ToTorch(const Device& device) {
  switch (device.kind) {
    case Device::Kind::kCpu:
      return c10::Device(c10::kCPU);
    case Device::Kind::kGpu:
      return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device.index));
    case Device::Kind::kAsSaved:
      break;
  }
  return std::nullopt;
}

OnGpu::OnGpu(const Device& device) {
  if (device.kind != Device::Kind::kGpu) {
    return;
  }
  // Instances have threads of their own.
  static thread_local std::map<int32_t, c10::Stream> streams;
  const c10::Device wanted = *ToTorch(device);
  device_.emplace(wanted);
  auto found = streams.find(device.index);
  if (found == streams.end()) {
    const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
    found = streams.emplace(device.index, guard.getStreamFromGlobalPool(wanted)).first;
  }
  stream_.emplace(found->second);
}

void OnGpu::Wait() const {
  if (stream_) {
    c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeStream(stream_->current_stream());
  }
}

void PrepareGpu(const Settings& settings) {
  at::globalContext().setUserEnabledCuDNN(settings.cudnn);
}

void CleanCache(const Settings& settings) {
  if (settings.cache_cleaning) {
    c10::getDeviceAllocator(c10::kCUDA)->emptyCache();
  }
}

}  // namespace nereid::pytorch
