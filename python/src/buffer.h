// SPDX-License-Identifier: Apache-2.0
// Memory of output tensors: allocated for the server, then owned by whoever looks at it, be that
// the response, a Tensor, a numpy array or another library's tensor.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include <pybind11/pybind11.h>

namespace nereid::python {

// A block of memory and the number of its owners. Thread-safe.
class Block {
 public:
  // With one owner; null when there is no memory. Aligned for vector instructions, as tensor
  // libraries like it.
  static Block* Create(size_t size);
  void Reference() { owners_.fetch_add(1, std::memory_order_relaxed); }
  void Unreference();
  char* data() { return reinterpret_cast<char*>(this) + kHeaderBytes; }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kHeaderBytes = 64;
  explicit Block(size_t size) : size_(size) {}

  std::atomic<size_t> owners_{1};
  size_t size_;
};

// One owner of a block; the Python class _core.Buffer. Move-only, thread-compatible.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Block* adopted) : block_(adopted) {}
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() {
    if (block_ != nullptr) block_->Unreference();
  }
  // Throws std::bad_alloc.
  static Buffer OfSize(size_t size);
  static Buffer CopyOf(const void* data, size_t size);

  char* data() const { return block_ == nullptr ? nullptr : block_->data(); }
  size_t size() const { return block_ == nullptr ? 0 : block_->size(); }

 private:
  Block* block_ = nullptr;
};

// Elements of type BYTES: each 4 bytes of length and that many bytes.
Buffer SerializeTexts(const pybind11::list& items);
// A list of bytes objects; InvalidArgumentError for what SerializeTexts would not have made.
pybind11::list DeserializeTexts(uintptr_t data, size_t size);

void RegisterBuffer(pybind11::module_& module);

}  // namespace nereid::python
