// SPDX-License-Identifier: Apache-2.0
// One inference that was asked for through the C API, from TRITONSERVER_ServerInferAsync until the
// last of its responses is deleted: the sink of its responses, and what cancels it. The request
// object that it was asked for with may be used again or deleted before.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "capi/response_allocator.h"
#include "core/cancel_handle.h"
#include "core/request.h"
#include "core/response_sink.h"
#include "engine/engine.h"
#include "triton/core/tritonserver.h"

namespace nereid::capi {

// Who hears of the progress of an inference. Set before it starts, then constant.
struct Callbacks {
  TRITONSERVER_InferenceRequestReleaseFn_t release = nullptr;
  void* release_userp = nullptr;
  TRITONSERVER_InferenceResponseCompleteFn_t respond = nullptr;
  void* respond_userp = nullptr;
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  void* allocator_userp = nullptr;
};

// Pooled. It lives as long as the core's request does, and as long as the request object that
// started it holds on to it, to cancel it.
//
// A scheduler may refuse a request, which the C API tells as the error of ServerInferAsync: the
// caller then keeps the request and no callback is called. So while a thread is inside Submit, a
// release without an execution is held back until it is known whether an error follows.
class InferenceCall final : public core::ResponseSink {
 public:
  // A call that has one owner, the caller, until Drop.
  static InferenceCall* Create(const Callbacks& callbacks);
  void Drop();

  // A request that answers to this call; one at most.
  core::RequestPtr MakeRequest();
  // Hands `request` to the engine. An error means that it was refused and that no callback was or
  // will be called. `handle`: what the release callback gets.
  base::Status Submit(core::RequestPtr request, TRITONSERVER_InferenceRequest* handle);

  // Any thread, while the caller owns this.
  void Cancel(engine::Engine& engine);
  bool is_cancelled() const { return is_cancelled_.load(); }
  // The request, or one for `model` that stands in for it when it is over: cancelled when this call
  // is, before or after. One thread at a time, which may meet Cancel.
  core::RequestRef Refer(core::ModelHandle model);
  // A request that belongs to no call.
  static core::RequestPtr MakeStandIn();

  // core::ResponseSink
  void OnResponseCreated(const core::Request& request) override;
  base::Result<std::optional<memory::Placement>> PredictPlacement(
      const core::Request& request, const char* name, size_t* byte_size,
      memory::Placement preferred) override;
  base::Result<std::optional<core::OutputPlacement>> PlaceOutput(
      const core::Request& request, const core::ResponseOutput& output, size_t byte_size,
      memory::Placement preferred) override;
  void ReleasePlacement(const core::OutputPlacement& placement, size_t byte_size) override;
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestReleased(core::Request& request) override;
  void OnRequestGone() override;

  // For ObjectPool.
  void Recycle();

 private:
  // What a thread that is inside Submit has learned about its request.
  struct Submission;

  Submission* OwnSubmission() const;
  void CallRelease();
  void Unreference();

  Callbacks callbacks_;
  TRITONSERVER_InferenceRequest* handle_ = nullptr;
  uint64_t number_ = 0;  // tells one use of this object from the next
  bool is_submitted_ = false;
  bool is_decoupled_ = false;
  bool is_answered_ = false;  // confined to who sends
  std::atomic<uint32_t> references_{0};
  std::atomic<bool> is_cancelled_{false};
  core::CancelHandle cancellation_;  // until the request is answered or, often, released
  // A reference to what Refer gives, until Drop.
  std::atomic<core::Request*> referred_{nullptr};
};

}  // namespace nereid::capi
