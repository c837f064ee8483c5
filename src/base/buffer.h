// SPDX-License-Identifier: Apache-2.0
// Reference-counted byte buffers from a bounded, trimmed pool. Bytes come off the socket into one
// of these and stay there; tensors are views that hold a reference. Buffers are not zero-filled:
// write before you read, or use AcquireZeroedBuffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace nereid::base {

// The alignment of every buffer's data, enough for any vector load.
inline constexpr size_t kBufferAlignment = 64;
// The readable bytes past the capacity of every buffer, for parsers that load whole vectors.
inline constexpr size_t kBufferPadding = 64;

// The bytes that a buffer takes besides its capacity. A capacity of 2^n less this wastes nothing.
inline constexpr size_t kBufferOverhead = 128;

// Called, on any thread, when lent bytes are no longer in use.
using LentBytesReleaser = void (*)(void* user);

namespace buffer_internal {
// The header of every buffer, in front of its bytes.
struct alignas(kBufferAlignment) Header {
  std::atomic<uint32_t> references;
  uint32_t size_class : 31;      // kUnpooled: returned to the allocator
  uint32_t has_small_start : 1;  // its first pages are small, see AcquireArrivalBuffer
  size_t capacity;
  std::byte* bytes;           // behind the header, except for lent bytes
  Header* next;               // while on a free list
  LentBytesReleaser release;  // null except for lent bytes
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
  // The data is 64-byte aligned.
  std::byte* data() const { return header_->bytes; }
  size_t capacity() const { return header_ != nullptr ? header_->capacity : 0; }
  // Whether WrapLentBytes made this buffer: the lender may read and change the bytes at any time.
  bool is_lent() const { return header_ != nullptr && header_->release != nullptr; }
  bool unique() const { return header_->references.load(std::memory_order_acquire) == 1; }
  void Reset() {
    buffer_internal::Header* header = std::exchange(header_, nullptr);
    if (header != nullptr && header->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      buffer_internal::Recycle(header);  // acq_rel: pairs with other Resets and with unique
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
  }  // relaxed: the reference that is copied orders this

  buffer_internal::Header* header_ = nullptr;
};

// Returns a buffer of at least `size` bytes with unspecified content; empty when memory is
// exhausted.
BufferRef AcquireBuffer(size_t size);
// Like AcquireBuffer, for bytes that a client has announced but may send slowly or never. The
// memory in use grows with what is written from the front, to at most twice as much, rather than by
// a huge page at the first byte.
BufferRef AcquireArrivalBuffer(size_t size);
// Like AcquireBuffer, with the first `size` bytes zero.
BufferRef AcquireZeroedBuffer(size_t size);
// Returns a buffer over memory that the caller lends. REQUIRES: `bytes` is 64-byte aligned and
// kBufferPadding more bytes after its end are readable. `release(user)` is called once, when the
// last reference is dropped, or at once if memory is exhausted; the result is empty then.
BufferRef WrapLentBytes(std::byte* bytes, size_t capacity, LentBytesReleaser release, void* user);

// Returns the bytes that the process-wide pool keeps for reuse. TrimBuffers returns them to the
// system.
size_t PooledBufferBytes();
// Frees pooled buffers that were not used since the previous call. Call it every few seconds.
void TrimBuffers();

}  // namespace nereid::base
