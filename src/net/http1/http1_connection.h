// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 connection, which is also the one exchange it can have at a time.
//
// The reactor reads and parses (State); a reply may be written by any thread. The two meet in
// `phase_`: a thread that has written a whole reply marks it kReplied and touches nothing more, and
// the reactor finds the mark when the client's next bytes arrive, so that neither waits for the
// other nor posts. Only when the reactor has a reason to hear of the reply at once (pipelined
// bytes, a disconnect, draining) does it move the phase to kHandlingNotify, and only when the
// writer has a reason (a socket that is full, a connection to close) does it post `resume_` itself.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "http1/http_head_parser.h"
#include "http1/http_server.h"
#include "net/connection.h"
#include "net/pace.h"
#include "net/tls_handshake.h"

namespace nereid::http1 {

class HttpServer::Core {
 public:
  Core(const HttpServerOptions& options, net::ReactorPool& pool, HttpHandler& handler)
      : options(options), handler(handler), group(pool) {}

  const HttpServerOptions options;
  HttpHandler& handler;
  std::unique_ptr<net::TlsContext> tls;  // null: plain
  net::TlsHandshake::Next after_handshake;
  net::ConnectionGroup group;
};

// Confined to its reactor, but for the reply functions (one thread at a time).
class Http1Connection final : public net::Connection, public HttpExchange, private HttpChunkSink {
 public:
  Http1Connection(net::Reactor& reactor, HttpServer::Core& core, base::UniqueFd socket,
                  std::unique_ptr<net::TlsChannel> tls = nullptr);
  using HttpExchange::is_crowded;
  using net::Connection::reactor;
  void Start();

  // The reply side of HttpExchange.
  void Reply(const HttpReply& reply);
  void Drop();
  void ListenFor(HttpExchangeEvents* events);
  bool BeginStream(const HttpReply& reply, std::string_view chunk);
  bool StreamChunk(std::string_view chunk);
  void FinishStream(std::string_view chunk);

 private:
  enum class State : uint8_t {
    kHead,     // between requests or inside a head
    kBody,     // receiving a body of known length into body_buffer_
    kDiscard,  // throwing away the rest of an oversize body
    kChunks,   // decoding a chunked body
    kBusy,     // the exchange is with the handler
    kLinger,   // the last reply is sent; waiting for the client to close
  };
  enum Phase : uint8_t { kHandling, kHandlingNotify, kReplied };

  struct ResumeTask final : net::Task {
    explicit ResumeTask(Http1Connection& connection) : connection(connection) {}
    void Run() override { connection.OnResume(); }
    Http1Connection& connection;
  };
  struct SendTask final : net::Task {
    explicit SendTask(Http1Connection& connection) : connection(connection) {}
    void Run() override { connection.SendDeferred(); }
    Http1Connection& connection;
  };
  struct StreamTask final : net::Task {
    explicit StreamTask(Http1Connection& connection) : connection(connection) {}
    void Run() override { connection.OnStreamWork(); }
    Http1Connection& connection;
  };
  // What the socket did not take of a reply.
  struct PendingReply {
    std::string text;
    size_t text_sent = 0;
    std::vector<HttpBodyPart> parts;
    size_t part = 0;
    size_t part_sent = 0;
    HttpReplyOwner* owner = nullptr;
  };
  // Chunks of a streamed reply that wait for the socket. Who brings chunks and the reactor send by
  // turns (is_sending), without the lock: neither waits for the other's system call.
  struct Stream {
    base::Mutex mutex;
    std::string waiting NEREID_GUARDED_BY(mutex);
    std::string sending;  // of the one who has set is_sending
    bool is_sending NEREID_GUARDED_BY(mutex) = false;
    bool is_stuck NEREID_GUARDED_BY(mutex) = false;  // the socket takes no more
    net::Pace pace NEREID_GUARDED_BY(mutex);
    bool task_posted NEREID_GUARDED_BY(mutex) = false;
    bool full NEREID_GUARDED_BY(mutex) = false;    // the frontend was told to pause
    bool ended NEREID_GUARDED_BY(mutex) = false;   // nothing follows `waiting`
    bool broken NEREID_GUARDED_BY(mutex) = false;  // the client is gone; chunks are thrown away
  };

  // Connection
  void OnRead(size_t n) override;
  void OnReadEnd(bool eof) override;
  void OnReadable() override;
  void OnWritable() override;
  void OnDrain() override;
  void OnSweep(uint64_t now_ms) override;
  void OnClosed() override;
  // HttpChunkSink
  void OnChunkBytes(std::string_view bytes) override;

  std::string_view unparsed() const {
    return {reinterpret_cast<const char*>(in_.data()) + in_begin_, in_end_ - in_begin_};
  }
  bool has_unparsed() const { return in_end_ != in_begin_; }
  void Process();
  bool StepHead();
  bool BeginBody();
  bool BeginBodyOfLength(uint64_t length);
  bool PlaceWholeBody(size_t length);
  bool StepBody();
  bool StepDiscard();
  bool StepChunks();
  bool Dispatch();
  bool AfterHandle();
  bool Refuse(HttpRefusal refusal);
  void SendContinue();
  bool IsTooOld() const { return retire_at_ms_ != 0 && CoarseNowMs() >= retire_at_ms_; }
  void ReadMore();
  void WaitForBytes();
  void ForeseeSize(uint64_t body_length);
  bool EnsureRoom();
  size_t ReadPosition(size_t from) const;
  size_t SplitOffset() const;

  // Whether a whole reply was written by another thread, and the reactor was not told.
  bool HasReplied() const {
    return state_ == State::kBusy && !notify_requested_ && !write_handed_ &&
           phase_.load(std::memory_order_acquire) == kReplied;
  }
  bool RequestNotify();
  void Complete(bool needs_reactor);
  void OnResume();
  void FinishExchange();
  void StartLinger();
  void DisarmEvents();
  void FireDisconnect();
  bool Defer(std::span<const iovec> parts, size_t size, HttpReplyOwner* owner);
  void SendDeferred();
  void AfterSend(ssize_t sent, size_t total, std::string_view head, const HttpReply& reply,
                 bool with_body);
  void KeepPending(std::string_view head, const HttpReply& reply, size_t sent, bool with_body);
  void DropPending();
  // Bytes of the request's body that have come.
  uint64_t ArrivedBodyBytes() const;
  // Whether the window of a body that ended just now brought too little of it.
  bool IsBodyTooSlow(uint64_t now_ms);
  void EndSlowBody();
  bool WritePending();
  void OnStreamWork();
  void AppendChunk(Stream& stream, std::string_view chunk) NEREID_REQUIRES(stream.mutex);
  // Sends what waits, unless somebody else does so just now; true when nothing is left for the
  // reactor.
  bool FlushStream(Stream& stream);
  // The same, by who has set is_sending.
  bool SendWaiting(Stream& stream);
  // Whether whoever brings chunks may go on.
  bool HasRoom(Stream& stream);
  // Has the reactor send what waits.
  void LeaveToReactor(Stream& stream) NEREID_REQUIRES(stream.mutex);

  HttpServer::Core& core_;
  State state_ = State::kHead;
  bool in_handle_ = false;         // Handle is on the stack
  bool notify_requested_ = false;  // phase_ was moved to kHandlingNotify
  bool write_handed_ = false;      // pending_ is the reactor's to write
  bool held_ = false;              // closed while the exchange was unanswered
  bool eof_ = false;
  bool stream_armed_ = false;  // the socket's next room is for stream_
  bool chunk_overflow_ = false;

  // Received bytes that are not parsed yet lie in [in_begin_, in_end_) of in_.
  base::BufferRef in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  size_t receive_bytes_;         // of the buffer for the next request
  base::BufferRef head_buffer_;  // what head_ views, when that is not in_ any more
  size_t predicted_split_ = 0;   // where from the start of a request its tensors begin, last time
  HttpHeadScanner scanner_;
  std::optional<HttpHeadParser> parser_;

  size_t split_ = HttpHandler::kNoSplit;
  size_t max_body_bytes_ = 0;  // of this request
  size_t body_offset_ = 0;     // of the body in body_buffer_
  size_t body_wanted_ = 0;
  size_t body_got_ = 0;
  uint64_t discard_left_ = 0;
  base::BufferRef discard_buffer_;
  uint64_t last_activity_ms_ = 0;
  uint64_t head_since_ms_ = 0;    // 0: no byte of a head has come
  uint64_t window_since_ms_ = 0;  // of the body that is coming; 0: none has begun
  uint64_t window_bytes_ = 0;     // of it that had come then
  bool is_head_split_ = false;    // it did not come at once
  uint64_t retire_at_ms_ = 0;     // 0: never

  std::atomic<uint8_t> phase_{kReplied};
  // Whoever has the exchange, then the reactor: never both.
  bool close_after_ = false;
  std::unique_ptr<PendingReply> pending_;
  std::unique_ptr<Stream> stream_;
  bool stream_started_ = false;
  bool stream_chunked_ = false;
  // A reply that leaves together with others: it lies in in_, behind the request.
  size_t deferred_size_ = 0;
  HttpReplyOwner* deferred_owner_ = nullptr;
  SendTask send_{*this};
  ResumeTask resume_{*this};
  StreamTask stream_task_{*this};

  // The listener, 0 for none, or kFiring while the reactor is calling it.
  static constexpr uintptr_t kFiring = 1;
  std::atomic<uintptr_t> events_{0};
  bool events_changed_ = false;  // SetEvents was called from inside a call (reactor only)
  uintptr_t events_next_ = 0;
};

}  // namespace nereid::http1
