// SPDX-License-Identifier: Apache-2.0
// The interface of gRPC calls for a frontend: GrpcHandler is notified of each new call,
// GrpcCallEvents of the events of one, and GrpcCall has the request's data and sends responses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/buffer.h"
#include "base/clock.h"
#include "http2/grpc_head.h"
#include "http2/grpc_message.h"
#include "http2/unsent_count.h"
#include "net/compression.h"
#include "net/peer_identity.h"

namespace nereid::http2 {

class CallHost;

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
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

// The reason for which the server itself ends a call.
struct GrpcError {
  GrpcStatus status = GrpcStatus::kInternal;
  std::string text;
};

// The events of a call. They come on the call's reactor, on a thread that is writing for its
// connection or, for heavy messages, on a worker thread, one at a time, OnDone last; but OnSent and
// OnDrain may come while a worker is in another one. The object must stay valid until OnDone. The
// functions must be brief.
class GrpcCallEvents {
 public:
  // One complete message, decompressed. `buffer` keeps `message` alive (and may be empty if the
  // message is).
  virtual void OnMessage(base::BufferRef buffer, std::string_view message) = 0;
  // Returns whether handling this message, of 64 KiB or more, takes too long for a reactor. This
  // message and later ones, and the half-close, then come on a worker thread.
  virtual bool IsHeavy(std::string_view /*message*/) const { return false; }
  // The client sends no more.
  virtual void OnHalfClose() = 0;
  // One or more messages of Send have left the queue (GrpcCall::WantSent).
  virtual void OnSent() {}
  // The connection will end after its calls: the server stops, or the connection has reached its
  // maximum age.
  virtual void OnDrain() {}
  // The client disconnected or the deadline passed. At most once, possibly after the call was
  // finished; later responses are dropped.
  virtual void OnCancelled() = 0;
  // The stream is over and none of these functions is called again.
  virtual void OnDone() = 0;

 protected:
  ~GrpcCallEvents() = default;
};

// One call on the server. Pooled and reference-counted (GrpcCallRef). The getters are constant from
// OnCall on; the sending functions are thread-safe and never wait.
class GrpcCall {
 public:
  // For example "/inference.GRPCInferenceService/ModelInfer".
  std::string_view path() const { return head_->path(); }
  // Returns the first metadata value of that lower-case name, empty if absent.
  std::string_view Metadata(std::string_view name) const { return head_->Find(name); }
  // Whether there is such metadata as endpoint-load-metrics-format; known without a search.
  bool wants_load() const { return head_->wants_load(); }
  size_t metadata_count() const { return head_->count(); }
  std::pair<std::string_view, std::string_view> metadata(size_t i) const { return head_->at(i); }
  std::optional<base::TimePoint> deadline() const { return deadline_; }
  // Whether the client is known to have disconnected or the deadline has passed.
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_acquire); }
  // Whether its connection is among the last that the process can have: only health requests are
  // served.
  bool is_crowded() const;
  // See net::Connection.
  std::string PeerAddress() const;
  const net::PeerIdentity* peer_identity() const;
  // When the call's headers arrived (base::NowNs).
  uint64_t start_ns() const { return start_ns_; }
  // The bytes that were passed to Send and are not yet on their way.
  size_t unsent_bytes() const { return unsent_.bytes(); }
  // The messages that were passed to Send and are not yet on their way.
  size_t unsent_messages() const { return unsent_.messages(); }
  // Sets whether OnSent is called. Messages that left before are visible in unsent_messages only.
  void WantSent(bool wanted) { unsent_.Want(wanted); }

  // Sends one message. Messages leave in the order of these calls, as far as that is defined.
  // `credit` is what Credit would report, and costs nothing here.
  void Send(GrpcMessagePtr message, size_t credit = 0);
  // Sends the last message and ends the call with OK.
  void SendAndFinish(GrpcMessagePtr message);
  // The same with trailers.
  void SendAndFinish(GrpcMessagePtr message, GrpcTrailers trailers);
  // Ends the call. Only the first end counts.
  void Finish(GrpcStatus status, std::string_view text);
  // The same with trailers.
  void Finish(GrpcStatus status, std::string_view text, GrpcTrailers trailers);
  // Ends the call without the messages that are not on their way yet; OnCancelled follows.
  void Abort(GrpcStatus status, std::string_view text);
  // Reports that the frontend is done with `bytes` of this call's messages. A connection whose
  // unfinished messages exceed its budget gets no flow-control window. The end of the call implies
  // this for all of them.
  void Credit(size_t bytes);

 protected:
  friend class GrpcCallRef;

  // Every call is a GrpcStream.
  GrpcCall() = default;
  ~GrpcCall() = default;

  void Order(GrpcMessagePtr message, uint8_t kinds);
  void Reference() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unreference();

  // -- Constant from OnCall on. --
  CallHost* host_ = nullptr;  // held until the call is recycled
  std::shared_ptr<const GrpcHead> head_;
  std::optional<base::TimePoint> deadline_;
  uint64_t start_ns_ = 0;
  net::Compression response_encoding_ = net::Compression::kIdentity;

  // -- Thread-safe. --
  std::atomic<uint32_t> references_{0};
  std::atomic<bool> is_cancelled_{false};
  UnsentCount unsent_;
};

// A reference to a call.
class GrpcCallRef {
 public:
  GrpcCallRef() = default;
  explicit GrpcCallRef(GrpcCall& call) : call_(&call) { call.Reference(); }
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
  // Handles a call with valid headers. Returns the receiver of its events, or null after finishing
  // the call itself (an unknown path), whose messages are then discarded.
  virtual GrpcCallEvents* OnCall(GrpcCallRef call) = 0;
};

}  // namespace nereid::http2
