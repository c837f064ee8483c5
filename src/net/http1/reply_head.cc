// SPDX-License-Identifier: Apache-2.0
#include "http1/reply_head.h"

#include <charconv>
#include <cstring>

namespace nereid::http1 {

ReplyHead::ReplyHead(const HttpReply& reply, const ReplyForm& form, uint64_t body_bytes) {
  AppendStart(reply, form);
  Append("Content-Length: ");
  AppendNumber(body_bytes);
  Append("\r\n");
  AppendEnd(form);
}

ReplyHead::ReplyHead(const HttpReply& reply, const ReplyForm& form, StreamFraming framing) {
  AppendStart(reply, form);
  if (framing == StreamFraming::kChunks) Append("Transfer-Encoding: chunked\r\n");
  AppendEnd(form);
}

void ReplyHead::Append(std::string_view text) {
  if (text.empty()) return;
  if (heap_.empty() && size_ + text.size() <= sizeof inline_) {
    std::memcpy(inline_ + size_, text.data(), text.size());
    size_ += text.size();
    return;
  }
  if (heap_.empty()) heap_.assign(inline_, size_);
  heap_.append(text);
}

void ReplyHead::AppendNumber(uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  Append({digits, static_cast<size_t>(end - digits)});
}

void ReplyHead::AppendStart(const HttpReply& reply, const ReplyForm& form) {
  if (reply.status == 200) {
    Append("HTTP/1.1 200 OK\r\n");
  } else {
    Append("HTTP/1.1 ");
    AppendNumber(static_cast<uint64_t>(reply.status));
    Append(" ");
    Append(HttpReason(reply.status));
    Append("\r\n");
  }
  if (!reply.content_type.empty()) {
    Append("Content-Type: ");
    Append(reply.content_type);
    Append("\r\n");
  }
  Append(reply.headers);
  Append(form.lines);
}

void ReplyHead::AppendEnd(const ReplyForm& form) {
  if (form.closes) {
    Append("Connection: close\r\n");
  } else if (form.version < 11) {
    Append("Connection: keep-alive\r\n");
  }
  Append("\r\n");
}

}  // namespace nereid::http1
