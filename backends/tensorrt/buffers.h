// SPDX-License-Identifier: Apache-2.0
// Memory for the inputs and outputs of an instance.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend_kit/mutex.h"
#include "backend_kit/scatter.h"
#include "tensorrt_backend/driver.h"
#include "tensorrt_backend/layout.h"

namespace nereid::tensorrt {

// Blocks of the host's memory into which outputs are copied. The server may keep a block until it
// has sent it. Thread-safe.
class HostPool : public std::enable_shared_from_this<HostPool> {
 public:
  HostPool(const Device& device, bool is_pinned) : device_(device), is_pinned_(is_pinned) {}

  // Returns at least `size` bytes. They return to the pool with the last reference.
  backend::Result<std::shared_ptr<char>> Take(size_t size);

 private:
  // More blocks are in use only while clients read slowly.
  static constexpr size_t kMaxFree = 4;

  void GiveBack(HostMemory* block);

  const Device device_;
  const bool is_pinned_;
  backend::Mutex mutex_;
  std::vector<std::unique_ptr<HostMemory>> free_ NEREID_KIT_GUARDED_BY(mutex_);
};

// Memory on the device for an output whose size is known only once it is computed; TensorRT asks
// for it during the execution. Confined to the thread that executes.
class GrowingOutput : public OutputAllocator {
 public:
  explicit GrowingOutput(const Device& device) : device_(device) {}

  void* Reallocate(const char* tensor, void* memory, uint64_t size,
                   uint64_t alignment) noexcept override;
  void NotifyShape(const char* tensor, const Dims& dims) noexcept override;

  // The shape and the address in the last execution.
  const Dims& dims() const { return dims_; }
  DeviceAddress address() const { return memory_ != nullptr ? memory_->address() : 0; }

 private:
  const Device device_;
  std::unique_ptr<DeviceMemory> memory_;
  Dims dims_;
};

}  // namespace nereid::tensorrt
