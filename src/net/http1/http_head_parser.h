// SPDX-License-Identifier: Apache-2.0
// Beast's push parser behind a narrow interface: request heads become HttpHead views of the receive
// buffer, chunked bodies become callbacks, and everything that two servers could read differently
// (bare line feeds, folded lines, two lengths, a length and an encoding) is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <boost/beast/http/basic_parser.hpp>

#include "http1/http_head.h"

namespace nereid::http1 {

// Why a request is refused before any handler sees it; status 0 means that it is not refused.
struct HttpRefusal {
  int status = 0;
  std::string_view text;
};

// Finds the blank line that ends a head without parsing the head. Confined to its connection.
class HttpHeadScanner {
 public:
  enum class State : uint8_t { kIncomplete, kComplete, kBad };
  // `data` starts with the same bytes at every call for one head, and may have grown.
  State Scan(std::string_view data);
  // The size of the head with its blank line. REQUIRES: Scan returned kComplete.
  size_t size() const { return line_; }
  void Reset() { line_ = 0; }

 private:
  size_t line_ = 0;  // start of the first incomplete line
};

// Receives the decoded bytes of a chunked body.
class HttpChunkSink {
 public:
  virtual void OnChunkBytes(std::string_view bytes) = 0;

 protected:
  ~HttpChunkSink() = default;
};

// Parses one request; a new one is made for the next. Confined to its connection.
class HttpHeadParser final : private boost::beast::http::basic_parser<true> {
 public:
  static constexpr uint64_t kMaxChunks = 65'536;

  HttpHeadParser(HttpHead& head, size_t max_header_bytes);

  // Reads a head as nearly every client writes it, with its blank line, in one pass: GET or POST,
  // HTTP/1.1, plain characters, and no field that affects the connection or the body except
  // Content-Length and Connection. Returns the size of the head; 0 if it is different or
  // incomplete: then scanner and parser decide, and `head` may be partly filled. Heads that are
  // accepted here have the same meaning for them.
  static size_t ReadPlain(std::string_view data, size_t max_header_bytes, HttpHead& head);

  // `data` is one whole head as found by HttpHeadScanner; the views in HttpHead point into it.
  HttpRefusal ParseHead(std::string_view data);

  // The progress of ParseChunks: the bytes that it consumed, and whether the body has ended or was
  // refused.
  struct Progress {
    size_t consumed = 0;
    bool done = false;
    HttpRefusal refusal;
  };
  // Decodes as much of a chunked body as possible, after its head. Unconsumed bytes must be passed
  // again, with more.
  Progress ParseChunks(std::string_view data, HttpChunkSink& sink);

 private:
  using Error = boost::system::error_code;
  using View = boost::beast::string_view;
  using Verb = boost::beast::http::verb;
  using Field = boost::beast::http::field;

  void on_request_impl(Verb method, View method_text, View target, int version, Error&) override;
  void on_response_impl(int, View, int, Error&) override {}
  void on_field_impl(Field name, View name_text, View value, Error& error) override;
  void on_header_impl(Error&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Error&) override {}
  std::size_t on_body_impl(View body, Error&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t size, View, Error& error) override;
  std::size_t on_chunk_body_impl(std::uint64_t, View body, Error&) override;
  void on_finish_impl(Error&) override {}

  class Plain;

  void Refuse(int status, std::string_view text, Error& error);

  HttpHead& head_;
  HttpChunkSink* sink_ = nullptr;
  HttpRefusal refusal_;
  uint64_t chunk_count_ = 0;
  bool in_head_ = true;
  bool length_seen_ = false;
  bool encoding_seen_ = false;
  bool host_seen_ = false;
  std::string_view input_;  // the chunks that are being parsed
};

}  // namespace nereid::http1
