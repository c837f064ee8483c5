// SPDX-License-Identifier: Apache-2.0
// Reference-counted byte buffers from a bounded, trimmed pool. Bytes come off the socket into one
// of these and stay there; tensors are views that hold a reference. Nothing here is zero-filled:
// whoever takes a buffer writes before anybody reads (or asks for AcquireZeroed).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace nereid::base {

// Alignment of every buffer's data, enough for any vector load.
inline constexpr size_t kBufferAlignment = 64;
// Readable bytes past the capacity of every buffer, for parsers that load whole vectors.
inline constexpr size_t kBufferPadding = 64;

// What a buffer takes besides its capacity. Those of 2^n bytes without it waste nothing.
inline constexpr size_t kBufferOverhead = 128;

// Told, on any thread, that lent bytes are not used any more.
using LentBytesReleaser = void (*)(void* user);

namespace buffer_internal {
// Lies in front of the bytes of every buffer.
struct alignas(kBufferAlignment) Header {
  std::atomic<uint32_t> references;
  uint32_t size_class : 31;      // kUnpooled: back to the allocator
  uint32_t has_small_start : 1;  // its first pages are small, see AcquireArrivalBuffer
  size_t capacity;
  std::byte* bytes;           // behind the header, but for lent ones
  Header* next;               // while on a free list
  LentBytesReleaser release;  // null but for lent ones
  void* user;
};
static_assert(sizeof(Header) + kBufferPadding == kBufferOverhead);
void Recycle(Header* header);
}  // namespace buffer_internal

// A shared handle to one buffer. Thread-compatible; copies may live on different threads.
class BufferRef {
 public:
  BufferRef() = default;
  BufferRef(const BufferRef& other) : header_(other.header_) { Retain(); }
  BufferRef(BufferRef&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~BufferRef() { Reset(); }

  explicit operator bool() const { return header_ != nullptr; }
  // 64-byte aligned.
  std::byte* data() const { return header_->bytes; }
  size_t capacity() const { return header_ != nullptr ? header_->capacity : 0; }
  // Made by WrapLentBytes: others may see the bytes, and change them.
  bool is_lent() const { return header_ != nullptr && header_->release != nullptr; }
  bool unique() const { return header_->references.load(std::memory_order_acquire) == 1; }
  void Reset() {
    buffer_internal::Header* header = std::exchange(header_, nullptr);
    if (header != nullptr && header->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      buffer_internal::Recycle(header);
    }
  }

 private:
  friend BufferRef AcquireBuffer(size_t size);
  friend BufferRef AcquireArrivalBuffer(size_t size);
  friend BufferRef WrapLentBytes(std::byte* bytes, size_t capacity, LentBytesReleaser release,
                                 void* user);
  explicit BufferRef(buffer_internal::Header* header) : header_(header) {}
  void Retain() const {
    if (header_ != nullptr) header_->references.fetch_add(1, std::memory_order_relaxed);
  }

  buffer_internal::Header* header_ = nullptr;
};

// A buffer of at least `size` bytes whose content is unspecified; empty when memory is exhausted.
BufferRef AcquireBuffer(size_t size);
// The same for bytes that somebody has announced, who may send them slowly or never: the memory in
// use grows with what is written from the front, at most to twice as much, instead of by a huge
// page with the first byte.
BufferRef AcquireArrivalBuffer(size_t size);
// The same with the first `size` bytes zero.
BufferRef AcquireZeroedBuffer(size_t size);
// A buffer whose bytes are somebody else's: 64-byte aligned, kBufferPadding more readable ones
// behind them. `release(user)` is called once, when the last reference goes; also if memory is
// exhausted, when the result is empty.
BufferRef WrapLentBytes(std::byte* bytes, size_t capacity, LentBytesReleaser release, void* user);

// Bytes that the process-wide pool keeps for reuse, and gives back to the system by TrimBuffers.
size_t PooledBufferBytes();
// Frees pooled buffers that were not used since the previous call. Call it every few seconds.
void TrimBuffers();

}  // namespace nereid::base
