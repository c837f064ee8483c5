// SPDX-License-Identifier: Apache-2.0
// The memory of one input or output of an instance: on the device, and in the host's memory what
// goes to the device or comes from it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tensorrt_backend/buffers.h"
#include "tensorrt_backend/engine.h"
#include "tensorrt_backend/settings.h"

namespace nereid::tensorrt {

// Confined to the thread that executes, which must have made the device the current one.
class TensorMemory {
 public:
  // `info` outlives the memory.
  TensorMemory(const Device& device, const TensorInfo& info) : device_(device), info_(info) {}

  // Demands room for `size` bytes; the largest demand counts.
  void Reserve(uint64_t size) { capacity_ = std::max(capacity_, size); }
  // Makes an output one whose shape is known only after the computation.
  void SetDataDependent() { growing_ = std::make_unique<GrowingOutput>(device_); }
  // Allocates the memory of a shape tensor for as many values, and stores them.
  backend::Error AllocateValues(std::span<const int64_t> values);
  // Allocates what was demanded. `owner` names the instance in error texts.
  backend::Error Allocate(const Settings& settings, StreamHandle stream, const std::string& owner);
  // Tells a context where the tensor is. Returns whether it takes that.
  bool SetAddress(Context& context) const;

  // The following need Allocate.

  // Forgets what the execution before has staged.
  void Begin() { staged_from_ = staged_to_ = 0; }
  void Store(std::span<const int64_t> values);
  // Copies a piece of an input to its place on the device, or beside pieces that go there together.
  backend::Error Put(uint64_t offset, const backend::InputChunk& chunk, StreamHandle stream);
  // Starts the copy of what was staged.
  backend::Error Flush(StreamHandle stream);
  // Starts to copy an output to the host's memory.
  backend::Result<std::shared_ptr<char>> Fetch(uint64_t size, StreamHandle stream);
  // Starts to copy a part of an output to another place on the device.
  backend::Error CopyTo(DeviceAddress to, uint64_t offset, uint64_t size,
                        StreamHandle stream) const;

  // Null if the shape is known before the computation.
  const GrowingOutput* growing() const { return growing_.get(); }
  const char* values() const { return host_->data(); }
  uint64_t device_bytes() const { return device_memory_ != nullptr ? device_memory_->size() : 0; }
  uint64_t pinned_bytes() const {
    return (staging_ != nullptr ? staging_->size() : 0) + (host_ != nullptr ? host_->size() : 0);
  }

 private:
  const Driver& driver() const { return *device_.driver; }
  // The memory that TensorRT reads or writes, and, for inputs, the staging memory.
  backend::Error AllocateFixed(bool pins_inputs);
  // Where an output is on the device.
  DeviceAddress address() const {
    return growing_ != nullptr ? growing_->address() : device_memory_->address();
  }

  const Device device_;
  const TensorInfo& info_;
  uint64_t capacity_ = 0;
  std::unique_ptr<DeviceMemory> device_memory_;
  std::unique_ptr<HostMemory> host_;  // values of a shape tensor
  std::unique_ptr<GrowingOutput> growing_;
  std::shared_ptr<HostPool> pool_;  // of outputs
  // Where pieces of an input lie before they go to the device in one copy.
  std::unique_ptr<HostMemory> staging_;
  uint64_t staged_from_ = 0;
  uint64_t staged_to_ = 0;
};

}  // namespace nereid::tensorrt
