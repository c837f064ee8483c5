// SPDX-License-Identifier: Apache-2.0
// A gRPC server that knows no inference: HTTP/2 connections on the reactors, messages in and out,
// deadlines, cancellation, compression, flow control and keep-alive. A frontend implements
// GrpcHandler and, for each call, GrpcCallEvents.
//
//   class Echo : public GrpcHandler, GrpcCallEvents ...
//   auto server = GrpcServer::Start({.listener = {.port = 8001}}, pool, handler);
//
// In steady state a unary call costs no lock and no allocation, and calls that arrive together
// share one recv and one sendmsg. Whoever finishes a call writes to the socket, unless another
// thread is at it, which then takes the answer along.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/status.h"
#include "http2/grpc_head.h"
#include "http2/grpc_message.h"
#include "net/listener.h"
#include "net/reactor.h"
#include "net/tls.h"

namespace nereid::http2 {

// The values are gRPC's status codes.
enum class GrpcStatus : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// What happens to a call. All are called on the call's reactor, on a thread that is writing for its
// connection or, as far as they deal with heavy messages, on a worker's, one at a time, OnDone
// last; but OnSent and OnDrain may come while a worker is in another. The object stays valid until
// OnDone. They must be brief.
class GrpcCallEvents {
 public:
  // One complete message, decompressed. `buffer` keeps `message` alive (and may be empty when the
  // message is).
  virtual void OnMessage(base::BufferRef buffer, std::string_view message) = 0;
  // Whether taking in this message, of 64 KiB or more, costs so much that it had better not keep a
  // reactor. Messages from it on, and the half-close, then come on a worker's thread.
  virtual bool IsHeavy(std::string_view /*message*/) const { return false; }
  // The client sends nothing more.
  virtual void OnHalfClose() = 0;
  // A message of Send has left the queue (GrpcCall::WantSent).
  virtual void OnSent() {}
  // The connection is to end once its calls are over: the server stops, or the connection has
  // reached its age.
  virtual void OnDrain() {}
  // The client went away or the deadline passed. At most once, possibly after the call was
  // finished; what is sent from then on is dropped.
  virtual void OnCancelled() = 0;
  // The stream is over and none of these is called again.
  virtual void OnDone() = 0;

 protected:
  ~GrpcCallEvents() = default;
};

class GrpcConnection;
class GrpcSession;

// One call on the server. Pooled and counted (GrpcCallRef). The getters are constant from OnCall
// on; the sending methods are thread-safe and never wait.
class GrpcCall {
 public:
  // "/inference.GRPCInferenceService/ModelInfer"
  std::string_view path() const { return head_->path(); }
  // The first metadata value of that lower-case name, empty when absent.
  std::string_view Metadata(std::string_view name) const { return head_->Find(name); }
  size_t metadata_count() const { return head_->count(); }
  std::pair<std::string_view, std::string_view> metadata(size_t i) const { return head_->at(i); }
  std::optional<base::TimePoint> deadline() const { return deadline_; }
  // True once the client is known to be gone or the deadline has passed.
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_acquire); }
  net::Reactor& reactor() const { return *reactor_; }
  // As HttpExchange::is_crowded.
  bool is_crowded() const;
  // When the call's headers were seen (base::NowNs).
  uint64_t start_ns() const { return start_ns_; }
  // Bytes that were given to Send and are not yet on their way.
  size_t unsent_bytes() const { return unsent_bytes_.load(std::memory_order_relaxed); }
  // Messages of which that holds.
  size_t unsent_messages() const { return unsent_messages_.load(std::memory_order_acquire); }
  // Whether OnSent is wanted. What left before may be seen in unsent_messages only.
  void WantSent(bool wanted) { wants_sent_.store(wanted, std::memory_order_seq_cst); }

  // Sends one message. Messages leave in the order of these calls, as far as that is defined.
  void Send(GrpcMessagePtr message);
  // Sends the last message and ends the call with OK.
  void SendAndFinish(GrpcMessagePtr message);
  // Ends the call. Only the first end counts.
  void Finish(GrpcStatus status, std::string_view text);
  // Ends the call without the messages that are not on their way yet; OnCancelled follows.
  void Abort(GrpcStatus status, std::string_view text);
  // The frontend is through with `bytes` of this call's messages. A connection whose unfinished
  // messages exceed its budget is not given room to send more. The end of the call implies it.
  void Credit(size_t bytes);

  // For ObjectPool.
  void Recycle();

 private:
  friend class GrpcCallRef;
  friend class GrpcConnection;
  friend class GrpcSession;

  // A message that is not delivered yet.
  struct Waiting {
    base::BufferRef buffer;
    std::string_view message;
    bool is_compressed = false;
  };

  // Whether a worker has a message of the call, or will have.
  enum class Away : uint8_t { kNo, kInLine, kGone };

  void Unreference();
  void Order(GrpcMessagePtr message, uint8_t orders);

  // -- Constant from OnCall on. --
  GrpcConnection* connection_ = nullptr;  // held until the call is recycled
  net::Reactor* reactor_ = nullptr;
  GrpcCallEvents* events_ = nullptr;
  int32_t stream_id_ = 0;
  std::shared_ptr<const GrpcHead> head_;
  std::optional<base::TimePoint> deadline_;
  uint64_t start_ns_ = 0;
  uint8_t response_encoding_ = 0;  // a net::Compression

  // -- Look after themselves. --
  std::atomic<uint32_t> references_{0};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<size_t> unsent_bytes_{0};
  std::atomic<size_t> unsent_messages_{0};
  std::atomic<bool> wants_sent_{false};

  // -- Confined to the holder of the connection. --
  GrpcCall* previous_ = nullptr;
  GrpcCall* next_ = nullptr;
  int64_t content_left_ = -1;     // by content-length; -1 where the client does not say
  size_t stream_unconsumed_ = 0;  // bytes for which the stream was not given room again
  uint8_t request_encoding_ = 0;
  bool is_rejected_ = false;  // answered without a handler; the rest is thrown away
  bool half_closed_ = false;
  bool half_close_reported_ = false;
  bool cancel_reported_ = false;
  bool stream_closed_ = false;
  bool response_started_ = false;
  bool finished_ = false;
  Away away_ = Away::kNo;
  bool is_heavy_ = false;           // events of its input come on a worker's thread
  bool is_progress_known_ = false;  // progress_ is of the message being received
  size_t progress_ = 0;             // bytes of it that had come when somebody looked
  // The message being received.
  uint8_t prefix_[5];
  uint8_t prefix_filled_ = 0;
  base::BufferRef buffer_;
  size_t message_offset_ = 0;  // where in buffer_ the message begins
  size_t message_size_ = 0;
  size_t message_filled_ = 0;
  size_t held_bytes_ = 0;  // of messages delivered and not credited
  std::vector<Waiting>
      waiting_;              // messages not delivered: the reader is slow, or a worker has others
  size_t next_waiting_ = 0;  // of them
  // The messages being sent.
  GrpcMessage* send_head_ = nullptr;
  GrpcMessage* send_tail_ = nullptr;
  size_t queued_bytes_ = 0;     // of send_head_.., with prefixes, not yet framed
  uint8_t prefix_sent_ = 0;     // what is framed of send_head_: its prefix,
  size_t segment_ = 0;          // its segments before this one,
  size_t segment_offset_ = 0;   // and this much of this one
  bool head_referred_ = false;  // the output refers to bytes of send_head_
  int status_code_ = 0;
  std::string status_text_;
};

// A share in a call.
class GrpcCallRef {
 public:
  GrpcCallRef() = default;
  explicit GrpcCallRef(GrpcCall& call) : call_(&call) {
    call.references_.fetch_add(1, std::memory_order_relaxed);
  }
  GrpcCallRef(GrpcCallRef&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  GrpcCallRef& operator=(GrpcCallRef&& other) noexcept {
    std::swap(call_, other.call_);
    return *this;
  }
  ~GrpcCallRef() { Reset(); }
  void Reset() {
    if (GrpcCall* const call = std::exchange(call_, nullptr)) call->Unreference();
  }
  explicit operator bool() const { return call_ != nullptr; }
  GrpcCall& operator*() const { return *call_; }
  GrpcCall* operator->() const { return call_; }

 private:
  GrpcCall* call_ = nullptr;
};

// Thread-safe: called on every reactor. Outlives the server.
class GrpcHandler {
 public:
  virtual ~GrpcHandler() = default;
  // A call whose headers are in order. Returns who takes its events, or null after it finished the
  // call itself (an unknown path), whose messages are then thrown away.
  virtual GrpcCallEvents* OnCall(GrpcCallRef call) = 0;
};

enum class GrpcCompressionLevel : uint8_t { kNone, kLow, kMedium, kHigh };

struct GrpcServerOptions {
  net::ListenerOptions listener;
  net::TlsOptions tls;
  size_t max_message_bytes = INT32_MAX;  // received, also after decompression
  size_t max_header_list_bytes = 64 << 10;
  uint32_t max_concurrent_streams = 8192;
  uint32_t max_frame_bytes = 1 << 20;
  // Bytes of unfinished messages of one connection beyond which its client is given no more room.
  size_t connection_budget_bytes = size_t{64} << 20;
  // Declared bytes of the incomplete messages of one connection, unless there is only one.
  size_t max_incomplete_bytes = size_t{4} << 30;
  // Unsent bytes of one stream beyond which its further requests wait.
  size_t max_stream_backlog_bytes = size_t{16} << 20;
  GrpcCompressionLevel response_compression = GrpcCompressionLevel::kNone;
  // Triton's --grpc-keepalive-* and --grpc-http2-* flags, in its defaults.
  std::chrono::milliseconds keepalive_time{7'200'000};
  std::chrono::milliseconds keepalive_timeout{20'000};
  bool keepalive_permit_without_calls = false;
  int max_pings_without_data = 2;
  std::chrono::milliseconds min_recv_ping_interval_without_data{300'000};
  int max_ping_strikes = 2;
  std::optional<std::chrono::milliseconds> max_connection_age;
  std::optional<std::chrono::milliseconds> max_connection_age_grace;
  // What a message that is half received must bring on average, over every window of it.
  uint64_t min_message_bytes_per_s = 240;
  std::chrono::milliseconds message_window{30'000};
  // Without a byte of pending output being taken.
  std::chrono::milliseconds write_timeout{300'000};
  // From the connection to its first settings.
  std::chrono::milliseconds preface_timeout{30'000};
  // Streams a client may reset: at once, and per second from then on.
  uint32_t reset_burst = 5000;
  uint32_t resets_per_second = 1000;
};

// Thread-safe.
class GrpcServer {
 public:
  // `pool` and `handler` outlive the server. Errors as Listener::Start, or of the TLS files.
  static base::Result<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                         net::ReactorPool& pool,
                                                         GrpcHandler& handler);
  // Closes everything at once and waits until every call has been let go of. Not from a reactor.
  ~GrpcServer();

  uint16_t port() const;
  size_t connections() const;

  // Closes the listening socket. Connections go on.
  void StopAccepting();
  // Stops accepting, tells every client to go away, and lets calls finish until the deadline, when
  // the rest is closed. True when none had to be. Not from a reactor.
  bool Drain(base::TimePoint deadline);

  class Core;  // for the connections

 private:
  explicit GrpcServer(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace nereid::http2
