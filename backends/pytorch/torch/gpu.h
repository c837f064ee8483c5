// SPDX-License-Identifier: Apache-2.0
// Streams and memory of GPUs through PyTorch's own interfaces, so that nothing here needs CUDA's
// headers or libraries.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <optional>

#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// Makes a GPU, and a stream of the calling thread on it, current for a scope; does nothing for the
// CPU. The default stream would make instances wait for each other.
class OnGpu {
 public:
  explicit OnGpu(const Device& device);

  // Waits for everything that was begun in this scope.
  void Wait() const;

 private:
  std::optional<c10::DeviceGuard> device_;
  std::optional<c10::StreamGuard> stream_;
};

// The device for PyTorch; nothing if the model's file says where things are.
std::optional<c10::Device> ToTorch(const Device& device);

// Applies and does what only models on GPUs need.
void PrepareGpu(const Settings& settings);
void CleanCache(const Settings& settings);

}  // namespace nereid::pytorch
