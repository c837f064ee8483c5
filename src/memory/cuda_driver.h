// SPDX-License-Identifier: Apache-2.0
// The calls of the CUDA driver that the server needs. The driver is opened at run time: the server
// does not link with CUDA, and a machine without it only lacks GPUs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/shared_library.h"
#include "base/status.h"

namespace nereid::memory {

inline constexpr const char* kCudaLibrary = "libcuda.so.1";

// The handle by which one process gives another access to an allocation: CUipcMemHandle.
struct CudaIpcHandle {
  std::array<char, 64> bytes;
};

using CudaAddress = unsigned long long;  // CUdeviceptr

// The CUDA driver. Thread-safe. Error texts are the driver's own.
class CudaDriver {
 public:
  ~CudaDriver();

  // Returns null without a driver or without a GPU.
  static std::unique_ptr<CudaDriver> Open(const std::string& library = kCudaLibrary);

  int device_count() const { return device_count_; }
  // Returns major + minor / 10.
  base::Result<double> ComputeCapability(int64_t device) const;
  // The memory of a GPU in bytes, whoever uses it.
  struct MemoryInfo {
    size_t free = 0;
    size_t total = 0;
  };
  base::Result<MemoryInfo> ReadMemory(int64_t device) const;

  // Returns the error after which nothing works on `device` until this process ends, as after an
  // access to memory that is not there; OK if there was none.
  base::Status StickyError(int64_t device) const;

  base::Result<CudaAddress> Allocate(size_t size, int64_t device) const;
  base::Status Free(CudaAddress address, int64_t device) const;
  // Host memory that does not move, which every GPU copies from and to without a detour.
  base::Result<void*> AllocatePinned(size_t size) const;
  base::Status FreePinned(void* memory) const;
  // Lets kernels on `device` use the memory of `peer`. Unsupported if the hardware cannot.
  base::Status EnablePeerAccess(int64_t device, int64_t peer) const;

  // Maps another process's allocation on `device`.
  base::Result<CudaAddress> OpenHandle(const CudaIpcHandle& handle, int64_t device) const;
  base::Status CloseHandle(CudaAddress address, int64_t device) const;
  // Returns how many bytes of its allocation follow `address`.
  base::Result<size_t> AllocationSize(CudaAddress address, int64_t device) const;

  // Copies between memory of the host and of GPUs, in any combination, and returns after the copy
  // is complete. `device` is one whose memory is concerned.
  base::Status Copy(void* to, const void* from, size_t size, int64_t device) const;

 private:
  struct Functions;
  class CurrentContext;
  // A device's primary context and our stream in it, from its first use on.
  struct Device {
    void* context = nullptr;
    void* stream = nullptr;
  };

  CudaDriver(std::unique_ptr<base::SharedLibrary> library, std::unique_ptr<Functions> functions,
             int device_count);
  base::Status Check(int result) const;
  base::Result<Device> Use(int64_t device) const;

  const std::unique_ptr<base::SharedLibrary> library_;
  const std::unique_ptr<const Functions> functions_;
  const int device_count_;
  mutable base::Mutex mutex_;
  mutable std::vector<Device> devices_ NEREID_GUARDED_BY(mutex_);  // one for each
};

// Device memory is passed as pointers in the C API and here, and as numbers to the driver.
inline CudaAddress ToCudaAddress(const void* pointer) {
  return static_cast<CudaAddress>(reinterpret_cast<uintptr_t>(pointer));
}
inline std::byte* FromCudaAddress(CudaAddress address) {
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

}  // namespace nereid::memory
