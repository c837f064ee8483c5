// SPDX-License-Identifier: Apache-2.0
// A reply as a frontend describes it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/buffer.h"

namespace nereid::http1 {

// Bytes that a reply sends from where they lie. `owner` (if set) keeps them alive.
struct HttpBodyPart {
  const void* data = nullptr;
  size_t size = 0;
  base::BufferRef owner;
};

// Keeps the bytes that a reply's parts point to until the socket has them.
class HttpReplyOwner {
 public:
  // Called exactly once, on any thread, when the bytes of the reply are no longer needed: they are
  // sent, or the connection is gone. May run inside Respond.
  virtual void ReplySent() = 0;

 protected:
  ~HttpReplyOwner() = default;
};

// One reply. The body is `text` followed by `parts`; Content-Length is their sum.
struct HttpReply {
  int status = 200;
  // Copied by Respond, like `headers`. Empty: no Content-Type line.
  std::string_view content_type;
  // Further complete lines, each "Name: value\r\n".
  std::string_view headers;
  // The first bytes of the body. Needed only during Respond, which copies what the socket does not
  // take.
  std::string_view text;
  // Not copied. The array is needed only during Respond, the bytes until sent (owner of each part,
  // or `owner`).
  std::span<HttpBodyPart> parts;
  HttpReplyOwner* owner = nullptr;
  // Closes the connection after this reply.
  bool close = false;
};

// Returns the reason phrase that evhtp sends for a status, "OK" for 200.
std::string_view HttpReason(int status);

}  // namespace nereid::http1
