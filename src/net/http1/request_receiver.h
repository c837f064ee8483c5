// SPDX-License-Identifier: Apache-2.0
// The receiving half of a connection: from bytes to requests, without a socket. Its owner reads
// into Room, reports this with Received, and does what Advance says, until the step is to wait:
//
//   switch (receiver.Advance()) {
//     case Step::kIdle: …wait without a buffer…
//     case Step::kRead: …read into receiver.Room(), then receiver.Received(n)…
//     case Step::kRequest: …handle the request, reply, then receiver.Finish()…
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "http1/body_receiver.h"
#include "http1/http_head.h"
#include "http1/http_head_parser.h"
#include "http1/http_server.h"
#include "http1/receive_buffer.h"

namespace nereid::http1 {

// Confined to its connection's reactor.
class RequestReceiver {
 public:
  // The connection's next step.
  enum class Step : uint8_t {
    kIdle,      // nothing of a request has arrived: Release, and wait for bytes
    kRead,      // more is needed
    kContinue,  // send "100 Continue", for which the client waits; then Advance again
    kRequest,   // the request is whole; Finish when its reply is written
    kRefused,   // reply with refusal() and close
  };

  // Assembles requests in `request`; all arguments outlive this object.
  RequestReceiver(HttpRequest& request, HttpHandler& handler, const HttpServerOptions& options);

  // Processes the bytes that have arrived. Not while a request is with its handler.
  Step Advance();
  // Returns memory for the next read, also while a request is with its handler; empty if memory is
  // exhausted.
  std::span<std::byte> Room();
  void Received(size_t size);
  // Called when the request has its reply: frees its body and head, and lets the next one begin.
  void Finish();
  // Discards everything that arrives from now on.
  void IgnoreRest() { state_ = State::kIgnored; }
  // Frees the memory. REQUIRES: everything has been consumed.
  void Release() { buffer_.Release(); }

  const HttpRefusal& refusal() const { return refusal_; }
  // Whether the connection cannot be used after the request, because the rest of its body is not
  // read.
  bool leaves_rest() const { return body_.leaves_rest(); }
  // Whether bytes after the request wait.
  bool has_more() const { return !buffer_.empty(); }
  // Whether these are only ends of lines, which some clients send after a body.
  bool has_only_blanks() const {
    return buffer_.bytes().find_first_not_of("\r\n") == std::string_view::npos;
  }
  // Returns memory that is free until the next Room, for a small reply.
  std::span<std::byte> Spare() const { return buffer_.Spare(); }

  // Whether a part of a head has arrived, since request.start_ns, but not its end.
  bool is_in_head() const { return is_in_head_; }
  bool is_in_body() const { return state_ == State::kBody || state_ == State::kChunks; }
  uint64_t arrived_body_bytes() const { return body_.arrived(); }

 private:
  enum class State : uint8_t {
    kHead,     // between requests or inside a head
    kBody,     // receiving a body of known length
    kChunks,   // decoding a chunked body
    kWhole,    // the request is with its handler
    kIgnored,  // discarding everything
  };

  Step StepHead();
  Step BeginBody();
  Step BeginBodyOfLength(uint64_t length);
  Step PlaceWholeBody(size_t length);
  Step StepBody();
  Step StepChunks();
  // Returns whether the budget has room for the part of a head that has arrived.
  bool HasRoomForHead() const;
  // Called when the last byte of the request has arrived.
  Step FinishBody();
  Step Refuse(HttpRefusal refusal);

  HttpRequest& request_;
  HttpHandler& handler_;
  const size_t max_header_bytes_;
  const size_t max_body_bytes_;
  base::Budget* const budget_;  // null: no limit
  State state_ = State::kHead;
  bool is_in_head_ = false;
  bool is_head_split_ = false;  // the head arrived in several reads
  ReceiveBuffer buffer_;
  HttpHeadScanner scanner_;
  std::optional<HttpHeadParser> parser_;
  BodyReceiver body_;
  HttpRefusal refusal_;
};

}  // namespace nereid::http1
