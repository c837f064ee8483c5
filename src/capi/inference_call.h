// SPDX-License-Identifier: Apache-2.0
// One inference through the C API, from TRITONSERVER_ServerInferAsync until the last of its
// responses is deleted: the sink of its responses, and the object that cancels it. The request
// object it was started with may be reused or deleted before.
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

// The callbacks that report the progress of an inference. Set before it starts, then constant.
struct Callbacks {
  TRITONSERVER_InferenceRequestReleaseFn_t release = nullptr;
  void* release_userp = nullptr;
  TRITONSERVER_InferenceResponseCompleteFn_t respond = nullptr;
  void* respond_userp = nullptr;
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  void* allocator_userp = nullptr;
};

// Pooled. It lives as long as the core's request, and as long as the request object that started it
// keeps it for cancellation.
//
// If a scheduler refuses a request, ServerInferAsync returns the error, the caller keeps the
// request and no callback is called. So while a thread is inside Submit, a release without an
// execution is delayed until it is known whether an error follows.
class InferenceCall final : public core::ResponseSink {
 public:
  // Makes a call that has one owner, the caller, until Drop.
  static InferenceCall* Create(const Callbacks& callbacks);
  void Drop();

  // Makes a request whose responses go to this call; at most one.
  core::RequestPtr MakeRequest();
  // Passes `request` to the engine. An error means that it was refused and that no callback was or
  // will be called. `handle` is the argument of the release callback.
  base::Status Submit(core::RequestPtr request, TRITONSERVER_InferenceRequest* handle);

  // Any thread may call this while the caller owns the call.
  void Cancel(engine::Engine& engine);
  bool is_cancelled() const { return is_cancelled_.load(); }
  // Returns the request or, when that is over, a stand-in for `model`, which is cancelled if this
  // call is, before or after. One thread at a time may call it, concurrently with Cancel.
  core::RequestRef Refer(core::ModelHandle model);
  // Makes a request that belongs to no call.
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
  // What a thread inside Submit has learned about its request.
  struct Submission;

  Submission* OwnSubmission() const;
  void CallRelease();
  void Unreference();

  Callbacks callbacks_;
  TRITONSERVER_InferenceRequest* handle_ = nullptr;
  uint64_t number_ = 0;  // distinguishes successive uses of this object
  bool is_submitted_ = false;
  bool is_decoupled_ = false;
  bool is_completed_ = false;  // confined to the sender
  std::atomic<uint32_t> references_{0};
  std::atomic<bool> is_cancelled_{false};
  core::CancelHandle cancellation_;  // until the request has completed or, often, is released
  // A reference to the request that Refer returns, until Drop.
  std::atomic<core::Request*> referred_{nullptr};
};

}  // namespace nereid::capi
