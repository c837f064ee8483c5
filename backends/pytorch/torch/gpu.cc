// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/gpu.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <map>
#include <string>
#include <vector>

#include "backend_kit/mutex.h"

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

// Streams that no thread uses. For each stream that was ever used, PyTorch keeps the workspaces of
// its libraries (32 MiB on a large GPU), so a thread that ends leaves its streams to the next one.
// Thread-safe.
class SpareStreams {
 public:
  // Returns the spare streams of the process, which are never destroyed, because threads end late.
  static SpareStreams& Get() {
    static auto* const all = new SpareStreams();
    return *all;
  }

  c10::Stream Take(c10::Device device) {
    const backend::MutexLock lock(mutex_);
    std::vector<c10::Stream>& spare = streams_[device.index()];
    if (spare.empty()) {
      return c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(device);
    }
    const c10::Stream stream = spare.back();
    spare.pop_back();
    return stream;
  }

  void GiveBack(c10::Stream stream) {
    const backend::MutexLock lock(mutex_);
    streams_[stream.device_index()].push_back(stream);
  }

 private:
  backend::Mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<c10::Stream>> streams_ NEREID_KIT_GUARDED_BY(mutex_);
};

// The streams of one thread, one for each GPU that it has used. Confined to it.
class ThreadStreams {
 public:
  ~ThreadStreams() {
    for (const auto& [index, stream] : streams_) {
      SpareStreams::Get().GiveBack(stream);
    }
  }

  c10::Stream On(c10::Device device) {
    auto found = streams_.find(device.index());
    if (found == streams_.end()) {
      found = streams_.emplace(device.index(), SpareStreams::Get().Take(device)).first;
    }
    return found->second;
  }

 private:
  std::map<c10::DeviceIndex, c10::Stream> streams_;
};

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
  static thread_local ThreadStreams streams;
  const c10::Device wanted = *ToTorch(device);
  device_.emplace(wanted);
  stream_.emplace(streams.On(wanted));
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
