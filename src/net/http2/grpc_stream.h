// SPDX-License-Identifier: Apache-2.0
// A call as its connection sees it: what the frontend sees, and an HTTP/2 stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "http2/call_input.h"
#include "http2/grpc_call.h"
#include "http2/message_assembler.h"
#include "http2/send_queue.h"

namespace nereid::http2 {

// Pooled. Confined to the holder of the connection, but for what GrpcCall says is thread-safe.
struct GrpcStream final : GrpcCall {
  // A client begins a stream at `now_ns`. The caller has a reference; `host` is held until the last
  // one is given back.
  void Begin(CallHost& host, int32_t stream_id, uint64_t now_ns);
  // What the headers said, before the handler is told.
  void SetHead(std::shared_ptr<const GrpcHead> head) { head_ = std::move(head); }
  void SetDeadline(base::TimePoint deadline) { deadline_ = deadline; }
  void SetResponseEncoding(net::Compression encoding) { response_encoding_ = encoding; }
  const GrpcHead* head() const { return head_.get(); }
  net::Compression response_encoding() const { return response_encoding_; }
  UnsentCount& unsent() { return unsent_; }
  CallHost& host() const { return *host_; }

  // Whether the client's messages are of no interest any more.
  bool ignores_input() const { return is_rejected || is_finished; }
  // Tells the frontend that the call is cancelled, once. While a worker is in one of its events,
  // later: ReportReturned does it then.
  void ReportCancel();
  // Tells the frontend that there will be no more events; while a worker is in one, later as well.
  void ReportDone();
  // A worker is out of the event that it was in. Says what waited for that.
  void ReportReturned();
  // The calling thread, a worker, is out of the event.
  void Return() { Order(GrpcMessage::Create(), GrpcOrder::kReturn); }
  // For references that were not taken by a GrpcCallRef.
  using GrpcCall::Unreference;

  // For ObjectPool.
  void Recycle();

  GrpcStream* previous = nullptr;  // in StreamList
  GrpcStream* next = nullptr;
  GrpcCallEvents* events = nullptr;
  int32_t id = 0;
  int64_t content_left = -1;   // by content-length; -1 where the client does not say
  size_t unconsumed = 0;       // bytes for which the stream was not given room again
  size_t held_bytes = 0;       // of messages delivered and not credited
  bool is_rejected = false;    // refused without a handler; the rest is thrown away
  bool is_finished = false;    // its end, with status_code and status_text, is decided
  bool is_closed = false;      // the HTTP/2 stream is over
  bool has_response = false;   // headers were submitted
  bool was_cancelled = false;  // OnCancelled was called
  int status_code = 0;
  std::string status_text;
  MessageAssembler assembler;
  CallInput input;
  SendQueue output;
};

// The open streams of a connection.
class StreamList {
 public:
  GrpcStream* first() const { return first_; }
  // The one that began last, while it is open.
  GrpcStream* latest() const { return latest_; }
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }

  void Add(GrpcStream& stream) {
    latest_ = &stream;
    stream.next = first_;
    if (first_ != nullptr) first_->previous = &stream;
    first_ = &stream;
    ++size_;
  }
  void Remove(GrpcStream& stream) {
    (stream.previous != nullptr ? stream.previous->next : first_) = stream.next;
    if (stream.next != nullptr) stream.next->previous = stream.previous;
    stream.previous = stream.next = nullptr;
    if (latest_ == &stream) latest_ = nullptr;
    --size_;
  }

 private:
  GrpcStream* first_ = nullptr;
  GrpcStream* latest_ = nullptr;
  size_t size_ = 0;
};

}  // namespace nereid::http2
