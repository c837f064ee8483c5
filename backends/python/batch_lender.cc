// SPDX-License-Identifier: Apache-2.0
#include "python_backend/batch_lender.h"

#include <algorithm>
#include <atomic>

namespace nereid::python {
namespace {

bool Holds(const BlockPool::Block& block, std::span<const char> bytes) {
  return block.exists() && bytes.data() >= block.payload() &&
         bytes.data() + bytes.size() <= block.payload() + block.capacity() &&
         block.header().state.load(std::memory_order_acquire) == kBlockFree;
}

// A worker that reports a wrong block size changes only its own responses.
bool Holds(BlockHeader* result, std::span<const char> bytes) {
  const auto* const begin = reinterpret_cast<const char*>(result + 1);
  const uint64_t size = std::atomic_ref(result->size).load();
  return bytes.data() >= begin && static_cast<uint64_t>(bytes.data() - begin) <= size &&
         bytes.size() <= size - static_cast<uint64_t>(bytes.data() - begin);
}

}  // namespace

std::shared_ptr<const void> BatchLender::Lend(std::span<const char> bytes) {
  if (kept_ == nullptr) {
    kept_ = std::make_shared<Kept>();
    kept_->worker = worker_;
  }
  if (Holds(kept_->inputs.exists() ? kept_->inputs : batch_.block, bytes)) {
    if (!kept_->inputs.exists()) kept_->inputs = std::move(batch_.block);
    return kept_;
  }
  const auto holds = [bytes](const BlockPool::Block& block) { return Holds(block, bytes); };
  if (std::ranges::any_of(kept_->received, holds)) return kept_;
  if (std::ranges::any_of(batch_.received, holds)) {
    kept_->received = std::move(batch_.received);
    return kept_;
  }
  const auto& result = kept_->result != nullptr ? kept_->result : result_.block;
  if (result != nullptr && Holds(result.get(), bytes)) {
    if (kept_->result == nullptr) kept_->result = std::move(result_.block);
    return kept_;
  }
  return nullptr;
}

}  // namespace nereid::python
