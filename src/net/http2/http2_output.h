// SPDX-License-Identifier: Apache-2.0
// The pending output of one HTTP/2 socket: frame headers and small payloads are copied into scratch
// blocks, large payloads are referenced inside the messages they belong to; everything is sent by
// gathered writes. A message returns to its pool when its last referenced byte has been written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "base/buffer.h"
#include "http2/grpc_message.h"

namespace nereid::http2 {

// Confined to the holder of its connection.
class Http2Output {
 public:
  bool empty() const { return first_ == pieces_.size(); }
  // Whether enough is collected for one write.
  bool full() const {
    return pending_bytes_ >= kRoundBytes || pieces_.size() - first_ >= kRoundPieces;
  }

  // Returns false if memory is exhausted.
  bool Copy(const void* data, size_t size) {
    if (size > room_) return CopyToNew(data, size);
    if (size == 0) return true;
    std::memcpy(place_, data, size);
    place_ += size;
    room_ -= size;
    Refer(place_ - size, size);
    return true;
  }
  // Refers to bytes that stay unchanged until they are written.
  void Refer(const std::byte* data, size_t size) {
    if (size == 0) return;
    pending_bytes_ += size;
    if (data == end_) {
      pieces_.back().iov_len += size;
    } else {
      pieces_.push_back({const_cast<std::byte*>(data), size});
    }
    end_ = data + size;
  }
  // Copies the bytes if that is cheaper than a separate piece. Returns whether they are referred
  // to.
  bool Add(const std::byte* data, size_t size, bool* failed);
  // Recycles `message` once everything added so far has been written, which may be now.
  void Retire(GrpcMessagePtr message);

  // The pieces to write next.
  std::span<const iovec> pieces() const { return std::span(pieces_).subspan(first_); }
  // Reports that the first `written` bytes of them are written.
  void Advance(size_t written);
  // Drops everything.
  void Clear();

 private:
  static constexpr size_t kRoundBytes = size_t{1} << 20;
  static constexpr size_t kRoundPieces = 512;
  static constexpr size_t kCopyBelow = 2048;
  static constexpr size_t kScratchBytes = (16 << 10) - base::kBufferOverhead;

  bool CopyToNew(const void* data, size_t size);
  void ForgetPlaces();

  struct Retired {
    uint64_t at;  // position in the output after which the message is recycled
    GrpcMessagePtr message;
  };

  std::vector<iovec> pieces_;
  size_t first_ = 0;                // first piece with unwritten bytes
  const std::byte* end_ = nullptr;  // end of the last piece
  std::vector<base::BufferRef> scratch_;
  std::byte* place_ = nullptr;  // the next free byte in the last block
  size_t room_ = 0;             // free bytes from there on
  size_t pending_bytes_ = 0;
  uint64_t written_bytes_ = 0;
  std::vector<Retired> retired_;
  size_t first_retired_ = 0;
};

}  // namespace nereid::http2
