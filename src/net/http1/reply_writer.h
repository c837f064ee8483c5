// SPDX-License-Identifier: Apache-2.0
// Sends a whole reply, without knowing the socket: as the pieces of one gathered write, which is
// enough for most replies; deferred in the receive buffer until others of the same round are ready;
// and the rest that the socket did not take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>

#include "http1/http_reply.h"
#include "http1/reply_head.h"

namespace nereid::http1 {

// A piece of a gathered write.
inline iovec Piece(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

// A reply as it is sent. Lives on the stack of the thread that replies, no longer than the reply
// that it is made of.
class ReplyMessage {
 public:
  ReplyMessage(const HttpReply& reply, const ReplyForm& form);

  // The pieces of one write. A reply with very many parts needs several; ReplyWriter has the
  // others.
  std::span<const iovec> pieces() const { return {pieces_, count_}; }
  // The size of all of it.
  size_t size() const { return size_; }
  // Whether it should wait for others instead of being sent by itself.
  bool is_small() const { return is_in_pieces_ && size_ <= kMaxSmall; }

 private:
  friend class ReplyWriter;
  static constexpr size_t kMaxSmall = 4 << 10;
  static constexpr size_t kMaxParts = 30;

  const HttpReply& reply_;
  const uint64_t body_bytes_;
  const ReplyHead head_;
  const bool has_body_;
  bool is_in_pieces_;  // pieces_ has all of it
  size_t count_ = 0;
  size_t size_;
  iovec pieces_[kMaxParts + 2];
};

// The one reply of a connection that has not been sent whole. Used by the thread that replies, then
// by the reactor, never by both at a time; deferred replies always belong to the reactor.
class ReplyWriter {
 public:
  static constexpr size_t kMaxPieces = 64;

  // Copies a small reply into `room`, which must stay unchanged until SentDeferred; returns false
  // if the room is too small.
  bool Defer(const ReplyMessage& message, std::span<std::byte> room);
  bool is_deferred() const { return !deferred_.empty(); }
  std::string_view deferred() const { return deferred_; }

  // Reports that the socket took `sent` bytes of the pieces of `message` or of deferred(); -1: it
  // is broken. Returns true if the reply is sent and its owner has been notified. Otherwise the
  // rest was kept, and has_rest() holds.
  bool Sent(const ReplyMessage& message, ssize_t sent);
  bool SentDeferred(ssize_t sent);

  bool has_rest() const { return rest_ != nullptr; }
  // The size of the rest.
  uint64_t rest_bytes() const;
  // Returns how many pieces of the rest were put into `pieces`, 0 at its end.
  size_t FillPieces(std::span<iovec> pieces) const;
  // Reports that the socket took `sent` bytes of them.
  void SentRest(size_t sent);
  // Drops the rest because it was sent or the connection is gone, and notifies its owner.
  void DropRest();

 private:
  // What the socket did not take.
  struct Rest {
    std::string text;
    size_t text_sent = 0;
    std::vector<HttpBodyPart> parts;
    size_t part = 0;
    size_t part_sent = 0;
    HttpReplyOwner* owner = nullptr;
  };

  std::unique_ptr<Rest> rest_;
  std::string_view deferred_;
  HttpReplyOwner* deferred_owner_ = nullptr;
};

}  // namespace nereid::http1
