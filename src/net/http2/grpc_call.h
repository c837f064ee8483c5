// SPDX-License-Identifier: Apache-2.0
// What a frontend sees of gRPC calls: GrpcHandler is told of each new call, GrpcCallEvents of what
// happens to one, and GrpcCall says what the client sent and takes the response.
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
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

// Why the server itself ends a call.
struct GrpcError {
  GrpcStatus status = GrpcStatus::kInternal;
  std::string text;
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
  // One or more messages of Send have left the queue (GrpcCall::WantSent).
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
  // Whether its connection is among the last that the process can have: only health is answered.
  bool is_crowded() const;
  // When the call's headers were seen (base::NowNs).
  uint64_t start_ns() const { return start_ns_; }
  // Bytes that were given to Send and are not yet on their way.
  size_t unsent_bytes() const { return unsent_.bytes(); }
  // Messages of which that holds.
  size_t unsent_messages() const { return unsent_.messages(); }
  // Whether OnSent is wanted. What left before may be seen in unsent_messages only.
  void WantSent(bool wanted) { unsent_.Want(wanted); }

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

// A share in a call.
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
  // A call whose headers are in order. Returns who takes its events, or null after it finished the
  // call itself (an unknown path), whose messages are then thrown away.
  virtual GrpcCallEvents* OnCall(GrpcCallRef call) = 0;
};

}  // namespace nereid::http2
