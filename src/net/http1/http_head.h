// SPDX-License-Identifier: Apache-2.0
// A received request: its head, its body, and how they arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <boost/container/static_vector.hpp>

#include "base/buffer.h"

namespace nereid::http1 {

enum class HttpMethod : uint8_t { kGet, kHead, kPost, kPut, kDelete, kOptions, kPatch, kOther };

// One header field of a request.
struct HttpHeader {
  std::string_view name;   // as the client spelled it
  std::string_view value;  // without surrounding blanks
};

// The request line and header fields. Immutable once a handler sees it; all views live as long as
// the exchange.
class HttpHead {
 public:
  static constexpr size_t kMaxHeaders = 96;

  HttpMethod method() const { return method_; }
  std::string_view method_text() const { return method_text_; }
  // The target as sent, with its percent-encoding but without scheme and authority: path[?query].
  std::string_view target() const { return target_; }
  std::string_view path() const { return target_.substr(0, target_.find('?')); }
  // Without the question mark.
  std::string_view query() const;
  // 10 for HTTP/1.0, or 11 for HTTP/1.1.
  int version() const { return version_; }
  // Returns the first field of that name, ignoring case. Fastest if both spell it the same way.
  std::optional<std::string_view> FindHeader(std::string_view name) const;
  // Returns the same value; empty if absent.
  std::string_view Header(std::string_view name) const { return FindHeader(name).value_or(""); }
  std::span<const HttpHeader> headers() const { return {headers_.data(), headers_.size()}; }
  // Absent for chunked bodies and for requests without one.
  std::optional<uint64_t> content_length() const { return content_length_; }
  bool chunked() const { return chunked_; }
  // Whether the client wants to send further requests on the connection.
  bool keep_alive() const { return keep_alive_; }
  // Whether the client waits for "100 Continue" before it sends the body.
  bool expect_continue() const { return expect_continue_; }

 private:
  friend class HttpHeadParser;
  friend class RequestReceiver;
  friend class HttpExchange;

  HttpMethod method_ = HttpMethod::kOther;
  bool chunked_ = false;
  bool keep_alive_ = false;
  bool expect_continue_ = false;
  int version_ = 11;
  std::string_view method_text_;
  std::string_view target_;
  std::optional<uint64_t> content_length_;
  // Does not touch the memory of fields that it does not have: most connections send few.
  boost::container::static_vector<HttpHeader, kMaxHeaders> headers_;
};

// One request while the receiver fills it; the accessors of HttpExchange describe each member.
struct HttpRequest {
  HttpHead head;
  std::string_view body;
  base::BufferRef body_buffer;
  bool body_truncated = false;
  uint64_t body_size = 0;
  uint64_t start_ns = 0;
  uint64_t received_ns = 0;
};

}  // namespace nereid::http1
