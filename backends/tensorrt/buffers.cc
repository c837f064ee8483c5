// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/buffers.h"

#include <algorithm>

namespace nereid::tensorrt {

using backend::Result;

Result<std::shared_ptr<char>> HostPool::Take(size_t size) {
  std::unique_ptr<HostMemory> block;
  {
    const backend::MutexLock lock(mutex_);
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [&](const auto& one) { return one->size() >= size; });
    if (found != free_.end()) {
      block = std::move(*found);
      free_.erase(found);
    }
  }
  if (block == nullptr) {
    NEREID_KIT_ASSIGN(block, HostMemory::Allocate(device_, size, is_pinned_));
  }
  HostMemory* const owned = block.release();
  return std::shared_ptr<char>(
      owned->data(), [pool = shared_from_this(), owned](char*) { pool->GiveBack(owned); });
}

void HostPool::GiveBack(HostMemory* block) {
  std::unique_ptr<HostMemory> owned(block);
  const backend::MutexLock lock(mutex_);
  free_.push_back(std::move(owned));
  if (free_.size() > kMaxFree) {
    // The smallest goes: a large one serves all.
    const auto smallest =
        std::min_element(free_.begin(), free_.end(),
                         [](const auto& a, const auto& b) { return a->size() < b->size(); });
    std::swap(*smallest, free_.back());
    owned = std::move(free_.back());
    free_.pop_back();
  }
}

void* GrowingOutput::Reallocate(const char*, void*, uint64_t size, uint64_t) noexcept {
  if (memory_ != nullptr && memory_->size() >= size) {
    return memory_->pointer();
  }
  memory_.reset();
  auto made = DeviceMemory::Allocate(device_, size);
  if (!made.ok()) {
    // TensorRT reports a failed execution.
    backend::LogIfError(made.TakeError(), "no memory for an output");
    return nullptr;
  }
  memory_ = std::move(made).value();
  return memory_->pointer();
}

void GrowingOutput::NotifyShape(const char*, const Dims& dims) noexcept { dims_ = dims; }

}  // namespace nereid::tensorrt
