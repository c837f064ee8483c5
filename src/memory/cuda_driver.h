// SPDX-License-Identifier: Apache-2.0
// The few calls of the CUDA driver that shared memory regions need. The driver is opened when the
// first CUDA region is registered: the server does not link with CUDA, and a machine without it
// only lacks CUDA regions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/shared_library.h"
#include "base/status.h"

namespace nereid::memory {

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
  static std::unique_ptr<CudaDriver> Open();

  // Maps another process's allocation on `device`.
  base::Result<CudaAddress> OpenHandle(const CudaIpcHandle& handle, int64_t device) const;
  base::Status CloseHandle(CudaAddress address, int64_t device) const;
  // Returns how many bytes of its allocation follow `address`.
  base::Result<size_t> AllocationSize(CudaAddress address, int64_t device) const;
  // CopyToHost and CopyToDevice return after the copy is complete.
  base::Status CopyToHost(void* to, CudaAddress from, size_t size, int64_t device) const;
  base::Status CopyToDevice(CudaAddress to, const void* from, size_t size, int64_t device) const;

 private:
  struct Functions;
  class CurrentContext;

  CudaDriver(std::unique_ptr<base::SharedLibrary> library, std::unique_ptr<Functions> functions,
             int device_count);
  base::Status Check(int result) const;

  const std::unique_ptr<base::SharedLibrary> library_;
  const std::unique_ptr<const Functions> functions_;
  const int device_count_;
};

}  // namespace nereid::memory
