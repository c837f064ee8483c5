// SPDX-License-Identifier: Apache-2.0
// One ModelInfer call: from its message to a core::Request, from the response to its message.
#pragma once

#include <atomic>

#include "core/cancel_handle.h"
#include "core/kept_response.h"
#include "core/response.h"
#include "grpc/call_context.h"
#include "grpc/infer_message.h"

namespace nereid::grpc {

// Pooled. Frees itself when the stream has ended and the request, if there was one, is gone. The
// connection reports events one at a time; Send comes from any thread. Both use only the call and
// the handle that cancels the request, which are thread-safe. If the model must be loaded first,
// the request is submitted by another thread (Resume), beside which only OnCancelled and OnDone may
// come.
class InferCall final : public http2::GrpcCallEvents, public core::ResponseSink {
 public:
  // `grant` is null if senders are not asked.
  static http2::GrpcCallEvents* Start(CallContext& context, http2::GrpcCallRef call,
                                      access::GrantRef grant);

  void OnMessage(base::BufferRef buffer, std::string_view message) override;
  bool IsHeavy(std::string_view message) const override { return IsHeavyToParse(message); }
  void OnHalfClose() override;
  void OnCancelled() override;
  void OnDone() override;

  void Send(core::ResponsePtr response, bool is_final) override;
  void OnAbandoned() override;
  void OnRequestGone() override;

  // For ObjectPool.
  void Recycle();

 private:
  // Who submits the request, and ends this call. A call in kWaiting or kResuming has a reference of
  // its own for that thread.
  enum class Phase : uint8_t {
    kDirect,    // the events do
    kWaiting,   // for its model: Resume will submit it
    kResuming,  // Resume is in progress
    kEnded,     // OnDone came before or during Resume, which has to notice
  };

  // Submits the request when its model was loaded, or could not be.
  void Resume(const base::Status& status);
  base::Status Submit();
  // Does what is to do when no more events come.
  void End();
  // Fills `request`, which then holds the message's bytes.
  base::Status Fill(core::Request& request);
  // Fails the call because a model that is not decoupled did not send one response.
  void RefuseCount();
  void Unreference();

  CallContext* context_ = nullptr;
  http2::GrpcCallRef call_;
  access::GrantRef grant_;
  base::BufferRef buffer_;
  std::string_view bytes_;
  bool has_message_ = false;
  InferMessage message_;
  core::CancelHandle cancellation_;  // until the last response, and no longer than OnDone
  std::shared_ptr<observe::Trace> trace_;
  base::UnitGrant in_flight_;
  std::atomic<int> references_{0};  // held by the stream and the request
  std::atomic<Phase> phase_{Phase::kDirect};
  std::atomic<bool> was_cancelled_{false};
  // Confined to the sender.
  bool expects_response_ = false;  // submitted, and the last response has not come
  size_t response_count_ = 0;
  core::KeptResponse first_response_;  // until it is known whether more follow
  bool was_found_ = false;             // whether Submit has found the model
};

}  // namespace nereid::grpc
