// SPDX-License-Identifier: Apache-2.0
#include "http1/reply_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nereid::http1 {
namespace {

uint64_t BodyBytes(const HttpReply& reply) {
  uint64_t bytes = reply.text.size();
  for (const HttpBodyPart& part : reply.parts) bytes += part.size;
  return bytes;
}

// Returns `text` without the first `sent` bytes, and subtracts the skipped bytes from `sent`.
std::string_view Unsent(std::string_view text, size_t& sent) {
  const size_t gone = std::min(sent, text.size());
  sent -= gone;
  return text.substr(gone);
}

}  // namespace

ReplyMessage::ReplyMessage(const HttpReply& reply, const ReplyForm& form)
    : reply_(reply),
      body_bytes_(BodyBytes(reply)),
      head_(reply, form, body_bytes_),
      has_body_(!form.omits_body),
      is_in_pieces_(!has_body_ || reply.parts.size() <= kMaxParts),
      size_(head_.text().size() + (has_body_ ? body_bytes_ : 0)) {
  pieces_[count_++] = Piece(head_.text());
  if (!has_body_) return;
  pieces_[count_++] = Piece(reply.text);
  for (const HttpBodyPart& part : reply.parts.first(std::min(reply.parts.size(), kMaxParts))) {
    pieces_[count_++] = {const_cast<void*>(part.data), part.size};
  }
}

bool ReplyWriter::Defer(const ReplyMessage& message, std::span<std::byte> room) {
  if (room.size() < message.size()) return false;
  std::byte* to = room.data();
  for (const iovec& piece : message.pieces()) {
    if (piece.iov_len == 0) continue;
    std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
  deferred_ = {reinterpret_cast<const char*>(room.data()), message.size()};
  deferred_owner_ = message.reply_.owner;
  return true;
}

bool ReplyWriter::Sent(const ReplyMessage& message, ssize_t sent) {
  const HttpReply& reply = message.reply_;
  if (sent < 0 || static_cast<size_t>(sent) >= message.size()) {
    if (reply.owner != nullptr) reply.owner->ReplySent();
    return true;
  }
  auto gone = static_cast<size_t>(sent);
  rest_ = std::make_unique<Rest>();
  rest_->owner = reply.owner;
  rest_->text = Unsent(message.head_.text(), gone);
  if (!message.has_body_) return false;
  rest_->text += Unsent(reply.text, gone);
  rest_->parts.reserve(reply.parts.size());
  for (HttpBodyPart& part : reply.parts) {
    const size_t skipped = std::min(gone, part.size);
    gone -= skipped;
    if (skipped == part.size) continue;
    rest_->parts.push_back({static_cast<const char*>(part.data) + skipped, part.size - skipped,
                            std::move(part.owner)});
  }
  return false;
}

bool ReplyWriter::SentDeferred(ssize_t sent) {
  const std::string_view text = std::exchange(deferred_, {});
  HttpReplyOwner* const owner = std::exchange(deferred_owner_, nullptr);
  if (sent < 0 || static_cast<size_t>(sent) == text.size()) {
    if (owner != nullptr) owner->ReplySent();
    return true;
  }
  rest_ = std::make_unique<Rest>();
  rest_->owner = owner;
  rest_->text = text.substr(static_cast<size_t>(sent));
  return false;
}

size_t ReplyWriter::FillPieces(std::span<iovec> pieces) const {
  const Rest& rest = *rest_;
  size_t count = 0;
  if (rest.text_sent < rest.text.size()) {
    pieces[count++] = Piece(std::string_view(rest.text).substr(rest.text_sent));
  }
  for (size_t i = rest.part; i < rest.parts.size() && count < pieces.size(); ++i) {
    const size_t skip = i == rest.part ? rest.part_sent : 0;
    const HttpBodyPart& part = rest.parts[i];
    pieces[count++] = {const_cast<char*>(static_cast<const char*>(part.data)) + skip,
                       part.size - skip};
  }
  return count;
}

uint64_t ReplyWriter::rest_bytes() const {
  if (rest_ == nullptr) return 0;
  uint64_t bytes = rest_->text.size() - rest_->text_sent;
  for (size_t i = rest_->part; i < rest_->parts.size(); ++i) bytes += rest_->parts[i].size;
  return bytes - rest_->part_sent;
}

void ReplyWriter::SentRest(size_t sent) {
  Rest& rest = *rest_;
  const size_t text = std::min(sent, rest.text.size() - rest.text_sent);
  rest.text_sent += text;
  sent -= text;
  while (sent > 0) {
    HttpBodyPart& part = rest.parts[rest.part];
    const size_t step = std::min(sent, part.size - rest.part_sent);
    rest.part_sent += step;
    sent -= step;
    if (rest.part_sent == part.size) {
      part.owner.Reset();
      ++rest.part;
      rest.part_sent = 0;
    }
  }
}

void ReplyWriter::DropRest() {
  if (rest_ == nullptr) return;
  const std::unique_ptr<Rest> rest = std::move(rest_);
  if (rest->owner != nullptr) rest->owner->ReplySent();
}

}  // namespace nereid::http1
