// SPDX-License-Identifier: Apache-2.0
// A whole reply on its way to the socket, without a socket: as the pieces of one gathered write,
// which is all for most replies; kept in the receive buffer until others of the same round are
// ready; and what the socket did not take of it.
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

// A reply in the form in which it is sent. Lives on the stack of the thread that replies, no longer
// than the reply that it is made of.
class ReplyMessage {
 public:
  ReplyMessage(const HttpReply& reply, const ReplyForm& form);

  // For one write. A reply of very many parts goes out in several, the others by ReplyWriter.
  std::span<const iovec> pieces() const { return {pieces_, count_}; }
  // Of all of it.
  size_t size() const { return size_; }
  // Whether it had better wait for others than be sent by itself.
  bool is_small() const { return is_in_pieces_ && size_ <= kMaxSmall; }

 private:
  friend class ReplyWriter;
  static constexpr size_t kMaxSmall = 4 << 10;
  static constexpr size_t kMaxParts = 30;

  const HttpReply& reply_;
  const uint64_t body_bytes_;
  const ReplyHead head_;
  const bool has_body_;
  bool is_in_pieces_;  // pieces_ are all of it
  size_t count_ = 0;
  size_t size_;
  iovec pieces_[kMaxParts + 2];
};

// The one reply of a connection that has not gone out whole. Used by the thread that replies, then
// by the reactor, never by both at a time; deferred replies are the reactor's all the time.
class ReplyWriter {
 public:
  static constexpr size_t kMaxPieces = 64;

  // Copies a small reply into `room`, which stays as it is until SentDeferred; false when it is too
  // small for that.
  bool Defer(const ReplyMessage& message, std::span<std::byte> room);
  bool is_deferred() const { return !deferred_.empty(); }
  std::string_view deferred() const { return deferred_; }

  // Of the pieces of `message`, or of deferred(), the socket took `sent` bytes; -1: it is broken.
  // True when the reply is through and its owner has been told. Otherwise what is left was kept,
  // and has_rest() holds.
  bool Sent(const ReplyMessage& message, ssize_t sent);
  bool SentDeferred(ssize_t sent);

  bool has_rest() const { return rest_ != nullptr; }
  // The next pieces of the rest: how many were put into `pieces`, 0 at its end.
  size_t FillPieces(std::span<iovec> pieces) const;
  // The socket took `sent` bytes of them.
  void SentRest(size_t sent);
  // The rest is not needed any more: it was sent, or the connection is gone. Tells its owner.
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
