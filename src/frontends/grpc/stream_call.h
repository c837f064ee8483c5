// SPDX-License-Identifier: Apache-2.0
// One ModelStreamInfer call: many requests on one stream. Responses of models that are not
// decoupled are sent in the order of their requests, those of decoupled models as they arrive. An
// error is reported in `error_message` and the stream continues, unless the client requested
// (metadata triton_grpc_error: true) that the first error end it.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "base/linked_list.h"
#include "base/mutex.h"
#include "core/cancel_handle.h"
#include "core/response.h"
#include "grpc/call_context.h"
#include "grpc/infer_message.h"
#include "grpc/parked_requests.h"

namespace nereid::grpc {

class StreamCall;

// One request of a stream. Pooled; frees itself when it is off the stream's list and its
// core::Request, if there was one, is gone.
class StreamRequest final : public core::ResponseSink {
 public:
  bool WouldWait() override;
  void AwaitRoom(const core::Request& request) override;
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestGone() override;

  // For ObjectPool.
  void Recycle();

 private:
  friend class StreamCall;

  void Unreference();

  StreamCall* stream_ = nullptr;  // holds a reference
  bool wants_empty_final_ = false;
  bool expects_final_ = false;  // submitted, and the last message has not come; as the next
  bool has_responded_ = false;  // confined to the sender
  size_t message_bytes_ = 0;
  base::UnitGrant in_flight_;
  std::string id_;
  std::string model_name_;
  std::string model_version_;
  std::atomic<int> references_{0};   // held by the list and the core::Request
  core::CancelHandle cancellation_;  // until no response follows

  // -- Guarded by the stream's mutex. --
  bool is_decoupled_ = false;  // constant once submitted
  base::ListLinks<StreamRequest> links_;
  bool is_complete_ = false;
  std::shared_ptr<observe::Trace> trace_;     // confined to the sender once submitted
  std::vector<http2::GrpcMessagePtr> ready_;  // messages that wait for their turn
};

// Pooled; the stream and each of its requests hold a reference.
class StreamCall final : public http2::GrpcCallEvents {
 public:
  // `grant` was given by the gate when its generation was `generation`; null if senders are not
  // asked.
  static http2::GrpcCallEvents* Start(CallContext& context, http2::GrpcCallRef call,
                                      access::GrantRef grant, uint64_t generation);

  void OnMessage(base::BufferRef buffer, std::string_view message) override;
  bool IsHeavy(std::string_view message) const override { return IsHeavyToParse(message); }
  void OnHalfClose() override;
  void OnSent() override;
  // While the server stops, a stream ends as soon as it has no request in progress.
  void OnDrain() override;
  void OnCancelled() override;
  void OnDone() override;

  // For ObjectPool.
  void Recycle();

 private:
  friend class StreamRequest;

  bool IsFull() const;
  bool WouldWait() const { return IsFull() && !is_ended_.load(); }
  // Blocks a thread that sends a response of a decoupled model until the client has taken earlier
  // ones. Never on a thread that must not wait (base/no_wait.h). Aborts the stream if that takes
  // too long.
  void WaitForRoom();

  // Whether the sender may still send requests; ends the stream if not, because its key was revoked
  // or its token has expired meanwhile.
  bool IsStillAdmitted();
  // Submits `request`, whose message was parsed to `message`, or parks it.
  base::Status Submit(base::BufferRef buffer, std::string_view bytes, StreamRequest& request);
  base::Status SubmitNow(base::BufferRef buffer, const access::GrantRef& grant,
                         InferMessage& message, core::ModelHandle model, StreamRequest& request);
  // Waits for the model that message_ names, and then resumes what was parked for it.
  void AwaitModel();
  // Submits what waits for the model, in order.
  void Resume(const std::string& model, const base::Result<core::ModelHandle>& found);
  base::Status SubmitParked(ParkedRequest& parked, const base::Result<core::ModelHandle>& found);
  // Tells the client of a request that was not submitted.
  void Refuse(StreamRequest& request, const base::Status& error, bool is_allowed = true);
  // Passes one message (or none) of `request`; `is_final` says that it is the last.
  void Deliver(StreamRequest& request, http2::GrpcMessagePtr message, bool is_final);
  // Sends what may be sent now, and ends the stream if nothing is left.
  void Drain();
  bool TakeSendable(std::vector<http2::GrpcMessagePtr>& sendable) NEREID_REQUIRES(mutex_);
  void Unlink(StreamRequest& request) NEREID_REQUIRES(mutex_);
  // Whether the stream has as many requests in progress as it may have.
  bool IsCrammed();
  // From here on nothing more is sent, and no model waits for room. Returns whether this is the end
  // of the stream, and not a later one.
  bool End();
  // Ends the stream with an error. Requests in progress are cancelled.
  void EndWith(http2::GrpcStatus status, std::string_view text);
  // Ends the stream with `error`: in triton_grpc_error mode, or because its client goes too far.
  void EndWith(const base::Status& error);
  void CancelAll();
  void Unreference();

  // Who sends the requests.
  struct Sender {
    access::GrantRef grant;   // null if senders are not asked
    uint64_t generation = 0;  // of the gate that gave it
  };

  CallContext* context_ = nullptr;
  http2::GrpcCallRef call_;
  bool errors_end_stream_ = false;  // triton_grpc_error mode
  Sender sender_;
  InferMessage message_;  // confined to the events
  std::atomic<int> references_{0};
  std::atomic<bool> is_ended_{false};  // nothing more is sent
  ParkedRequests parked_;

  base::Mutex mutex_;
  base::LinkedList<StreamRequest, &StreamRequest::links_> requests_ NEREID_GUARDED_BY(mutex_);
  std::vector<http2::GrpcMessagePtr> out_of_order_ NEREID_GUARDED_BY(mutex_);
  bool is_half_closed_ NEREID_GUARDED_BY(mutex_) = false;
  bool ends_when_idle_ NEREID_GUARDED_BY(mutex_) = false;  // the server is stopping
  bool is_draining_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_finished_ NEREID_GUARDED_BY(mutex_) = false;
  size_t credit_ NEREID_GUARDED_BY(mutex_) = 0;
  base::CondVar sent_;
  uint64_t sent_count_ NEREID_GUARDED_BY(mutex_) = 0;  // counted while a thread waits for room
};

}  // namespace nereid::grpc
