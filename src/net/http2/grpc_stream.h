// SPDX-License-Identifier: Apache-2.0
// A call as its connection sees it: the frontend's call, and an HTTP/2 stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/linked_list.h"
#include "http2/call_input.h"
#include "http2/grpc_call.h"
#include "http2/message_assembler.h"
#include "http2/send_queue.h"

namespace nereid::http2 {

// Pooled. Confined to the holder of the connection, except for what GrpcCall declares thread-safe.
struct GrpcStream final : GrpcCall {
  // Begins a stream of a client at `now_ns`. The caller has a reference; `host` is held until the
  // last reference is released.
  void Begin(CallHost& host, int32_t stream_id, uint64_t now_ns);
  // Sets the headers, before the handler is called.
  void SetHead(std::shared_ptr<const GrpcHead> head) { head_ = std::move(head); }
  void SetDeadline(base::TimePoint deadline) { deadline_ = deadline; }
  void SetResponseEncoding(net::Compression encoding) { response_encoding_ = encoding; }
  const GrpcHead* head() const { return head_.get(); }
  net::Compression response_encoding() const { return response_encoding_; }
  UnsentCount& unsent() { return unsent_; }
  CallHost& host() const { return *host_; }

  // Whether the client's messages are not needed any more.
  bool ignores_input() const { return is_rejected || is_finished; }
  // Notes the end of the call, as `order` has it.
  void SetEnd(GrpcOrder& order);
  // Reports the cancellation to the frontend, once. While a worker is in one of the call's events,
  // ReportReturned does it later.
  void ReportCancel();
  // Tells the frontend that there will be no more events; also delayed while a worker is in one.
  void ReportDone();
  // Called when a worker has left the event that it was in: reports what was delayed.
  void ReportReturned();
  // Called by a worker when it has left the event.
  void Return() { Order(GrpcMessage::Create(), GrpcOrder::kReturn); }
  // For references that are not held by a GrpcCallRef.
  using GrpcCall::Unreference;

  // For ObjectPool.
  void Recycle();

  base::ListLinks<GrpcStream> links;  // in StreamList
  GrpcCallEvents* events = nullptr;
  int32_t id = 0;
  int64_t content_left = -1;   // by content-length; -1 if the client did not send it
  size_t unconsumed = 0;       // bytes for which the window was not updated yet
  size_t held_bytes = 0;       // of messages delivered and not credited
  bool is_rejected = false;    // refused without a handler; the rest is discarded
  bool is_finished = false;    // its end, with status_code and status_text, is decided
  bool is_closed = false;      // the HTTP/2 stream is over
  bool has_response = false;   // headers were submitted
  bool was_cancelled = false;  // OnCancelled was called
  bool is_reset_next = false;  // has waited for its client to close it
  int status_code = 0;
  std::string status_text;
  std::unique_ptr<const GrpcTrailers> trailers;  // of its end; null: none
  MessageAssembler assembler;
  CallInput input;
  SendQueue output;
};

// The open streams of a connection.
class StreamList {
 public:
  GrpcStream* first() const { return streams_.head(); }
  // The most recently begun stream, while it is open.
  GrpcStream* latest() const { return latest_; }
  bool empty() const { return streams_.empty(); }
  size_t size() const { return streams_.size(); }
  // Returns how many bytes of all streams wait to be sent.
  size_t unsent_bytes() const {
    size_t bytes = 0;
    for (const GrpcStream* stream = first(); stream != nullptr; stream = stream->links.next) {
      bytes += stream->unsent_bytes();
    }
    return bytes;
  }

  void Add(GrpcStream& stream) {
    latest_ = &stream;
    streams_.PushFront(stream);
  }
  void Remove(GrpcStream& stream) {
    streams_.Remove(stream);
    if (latest_ == &stream) latest_ = nullptr;
  }

 private:
  base::LinkedList<GrpcStream, &GrpcStream::links> streams_;
  GrpcStream* latest_ = nullptr;
};

}  // namespace nereid::http2
