// SPDX-License-Identifier: Apache-2.0
// The memory of output tensors: allocated for the server, then owned by each object that refers to
// it: the response, a Tensor, a numpy array or another library's tensor.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include <pybind11/pybind11.h>

namespace nereid::python {

// A block of memory with a reference count. Thread-safe.
class Block {
 public:
  // Makes a block with one owner; null when memory is exhausted. Aligned for vector instructions,
  // as tensor libraries prefer.
  static Block* Create(size_t size);
  void Reference() { owners_.fetch_add(1); }
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
  // Throws std::bad_alloc when memory is exhausted.
  static Buffer OfSize(size_t size);
  static Buffer CopyOf(const void* data, size_t size);

  char* data() const { return block_ == nullptr ? nullptr : block_->data(); }
  size_t size() const { return block_ == nullptr ? 0 : block_->size(); }

 private:
  Block* block_ = nullptr;
};

// Serializes elements of type BYTES: for each 4 bytes of length and that many bytes.
Buffer SerializeTexts(const pybind11::list& items);
// Returns a list of bytes objects. Throws InvalidArgumentError for data that SerializeTexts cannot
// produce.
pybind11::list DeserializeTexts(uintptr_t data, size_t size);

void RegisterBuffer(pybind11::module_& module);

}  // namespace nereid::python
