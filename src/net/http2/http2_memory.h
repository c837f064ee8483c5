// SPDX-License-Identifier: Apache-2.0
// The allocator of one HTTP/2 session: freed blocks of the usual sizes are kept and reused, so that
// a stream costs no malloc once the connection has had one.
#pragma once

#include <array>
#include <cstddef>

#include <nghttp2/nghttp2.h>

namespace nereid::http2 {

// Confined to the holder of its connection. Outlives its session.
class Http2Memory {
 public:
  Http2Memory();
  ~Http2Memory();
  Http2Memory(const Http2Memory&) = delete;
  Http2Memory& operator=(const Http2Memory&) = delete;

  nghttp2_mem* interface() { return &interface_; }

 private:
  static constexpr size_t kClasses = 5;  // 32 to 512 bytes
  static constexpr size_t kKeptPerClass = 512;

  struct Block;
  struct FreeList {
    Block* head = nullptr;
    size_t count = 0;
  };

  void* Allocate(size_t size);
  void Free(void* pointer);
  void* Reallocate(void* pointer, size_t size);

  nghttp2_mem interface_;
  std::array<FreeList, kClasses> lists_;
};

}  // namespace nereid::http2
