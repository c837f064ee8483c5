// SPDX-License-Identifier: Apache-2.0
// One ModelInfer call: from its message to a core::Request, from the response to its message.
#pragma once

#include <atomic>

#include "core/cancel_handle.h"
#include "core/response.h"
#include "grpc/call_context.h"
#include "grpc/infer_message.h"

namespace nereid::grpc {

// Pooled. Frees itself when the stream is over and the request, if there was one, is gone. Events
// come from the connection one at a time, Send from any thread; they meet only in the call and in
// the handle that cancels the request, which are thread-safe.
class InferCall final : public http2::GrpcCallEvents, public core::ResponseSink {
 public:
  static http2::GrpcCallEvents* Start(CallContext& context, http2::GrpcCallRef call);

  void OnMessage(base::BufferRef buffer, std::string_view message) override;
  bool IsHeavy(std::string_view message) const override { return IsHeavyToParse(message); }
  void OnHalfClose() override;
  void OnCancelled() override;
  void OnDone() override;

  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestGone() override { Unreference(); }

  // For ObjectPool.
  void Recycle();

 private:
  base::Status Submit();
  // What the message says, into `request`, which then holds its bytes.
  base::Status Fill(core::Request& request);
  // A model that is not decoupled gave none, or several.
  void RefuseCount(core::ResponsePtr response);
  void Unreference();

  CallContext* context_ = nullptr;
  http2::GrpcCallRef call_;
  base::BufferRef buffer_;
  std::string_view bytes_;
  bool has_message_ = false;
  InferMessage message_;
  core::CancelHandle cancellation_;  // until OnDone
  std::shared_ptr<observe::Trace> trace_;
  std::atomic<int> references_{0};  // the stream and the request
  // Confined to the sender.
  size_t response_count_ = 0;
  core::ResponsePtr first_response_;  // while it is not known whether more follow
  bool was_cancelled_ = false;        // confined to the events
};

}  // namespace nereid::grpc
