// SPDX-License-Identifier: Apache-2.0
#include "capi/inference_call.h"

#include <utility>

#include <fmt/format.h>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "base/log.h"
#include "base/object_pool.h"
#include "capi/inference_request.h"
#include "capi/inference_response.h"
#include "core/model.h"
#include "core/response.h"

namespace nereid::capi {

using abi_objects::CallPlugin;
using Pool = base::ObjectPool<InferenceCall>;

struct InferenceCall::Submission {
  const InferenceCall* call;
  uint64_t number;
  Submission* outer;           // callbacks may submit
  bool holds_release = false;  // released before it was executed: refused, or served from a cache
  base::Status error;
};

namespace {

// The submissions of this thread, innermost first. A sink has no other way to know that it is
// called from inside Submit.
thread_local void* current_submission = nullptr;

// The sink of requests whose responses no caller waits for.
class NoSink final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
};

// The response to a request that was dropped without one.
core::ResponsePtr LostResponse() {
  const core::RequestPtr request = InferenceCall::MakeStandIn();
  core::ResponsePtr response = core::Response::Create(*request);
  response->SetError(base::InternalError("the request was dropped without a final response"));
  return response;
}

}  // namespace

InferenceCall* InferenceCall::Create(const Callbacks& callbacks) {
  InferenceCall* const call = Pool::Take();
  call->callbacks_ = callbacks;
  call->references_.store(1);
  return call;
}

void InferenceCall::Drop() {
  cancellation_.Close();
  core::RequestRef::Adopt(referred_.exchange(nullptr)).Reset();
  Unreference();
}

core::RequestPtr InferenceCall::MakeRequest() {
  references_.fetch_add(1);
  return core::Request::Create(*this);
}

InferenceCall::Submission* InferenceCall::OwnSubmission() const {
  auto* const submission = static_cast<Submission*>(current_submission);
  const bool is_own =
      submission != nullptr && submission->call == this && submission->number == number_;
  return is_own ? submission : nullptr;
}

base::Status InferenceCall::Submit(core::RequestPtr request,
                                   TRITONSERVER_InferenceRequest* handle) {
  handle_ = handle;
  is_decoupled_ = request->model->is_decoupled();
  cancellation_.Open(*request);
  is_submitted_ = true;
  // Copied, because another request may use this object when Schedule returns.
  const Callbacks callbacks = callbacks_;
  Submission submission{.call = this,
                        .number = number_,
                        .outer = static_cast<Submission*>(current_submission),
                        .error = {}};
  current_submission = &submission;
  engine::Engine::Schedule(std::move(request));
  current_submission = submission.outer;
  if (submission.holds_release && submission.error.ok()) {
    // Released now; responses will come from another thread.
    handle->MarkReleased();
    callbacks.release(handle, TRITONSERVER_REQUEST_RELEASE_ALL, callbacks.release_userp);
  }
  return submission.error;
}

void InferenceCall::CallRelease() {
  handle_->MarkReleased();
  callbacks_.release(handle_, TRITONSERVER_REQUEST_RELEASE_ALL, callbacks_.release_userp);
}

void InferenceCall::Cancel(engine::Engine& engine) {
  is_cancelled_.store(true);
  if (core::Request* const referred = referred_.load()) referred->Cancel();
  if (const core::RequestRef request = cancellation_.Take()) engine.Cancel(*request);
}

core::RequestRef InferenceCall::Refer(core::ModelHandle model) {
  core::Request* request = referred_.load();
  if (request == nullptr) {
    // While the reference is taken, no other thread drops it.
    core::RequestRef first = cancellation_.Take();
    if (first) {
      // The request may have completed meanwhile: then Drop, and nothing earlier, drops it.
      cancellation_.Open(*first);
    } else {
      const core::RequestPtr stand_in = MakeStandIn();
      stand_in->model = std::move(model);
      first = core::RequestRef(*stand_in);
    }
    request = first.Release();
    referred_.store(request);
  }
  if (is_cancelled()) request->Cancel();
  return core::RequestRef(*request);
}

core::RequestPtr InferenceCall::MakeStandIn() {
  static NoSink* const sink = new NoSink;  // leaked, because responses may arrive at the very end
  core::RequestPtr request = core::Request::Create(*sink);
  request->id = "";
  return request;
}

void InferenceCall::OnResponseCreated(const core::Request& /*request*/) {
  if (callbacks_.allocator->start == nullptr) [[likely]]
    return;
  const base::Status status =
      CallPlugin(callbacks_.allocator->start, callbacks_.allocator, callbacks_.allocator_userp);
  if (!status.ok()) {
    NEREID_LOG(kError, "response allocation start failed: {}", status.ToString());
  }
}

base::Result<std::optional<memory::Placement>> InferenceCall::PredictPlacement(
    const core::Request& /*request*/, const char* name, size_t* byte_size,
    memory::Placement preferred) {
  if (callbacks_.allocator->query == nullptr) return std::optional<memory::Placement>();
  TRITONSERVER_MemoryType type = abi_objects::ToMemoryType(preferred.type);
  NEREID_RETURN_IF_ERROR(CallPlugin(callbacks_.allocator->query, callbacks_.allocator,
                                    callbacks_.allocator_userp, name, byte_size, &type,
                                    &preferred.id));
  const auto known = abi_objects::FromMemoryType(type);
  if (!known) return base::InvalidArgumentError("unknown memory type from response allocator");
  return std::optional<memory::Placement>({.type = *known, .id = preferred.id});
}

base::Result<std::optional<core::OutputPlacement>> InferenceCall::PlaceOutput(
    const core::Request& /*request*/, const core::ResponseOutput& output, size_t byte_size,
    memory::Placement preferred) {
  TRITONSERVER_ResponseAllocator* const allocator = callbacks_.allocator;
  const char* const name = output.name.data();  // a zero byte follows
  const TRITONSERVER_MemoryType wish = abi_objects::ToMemoryType(preferred.type);
  TRITONSERVER_BufferAttributes attributes{.memory_type = wish, .memory_type_id = preferred.id};
  void* buffer = nullptr;
  void* owner = nullptr;
  NEREID_RETURN_IF_ERROR(CallPlugin(allocator->allocate, allocator, name, byte_size, wish,
                                    preferred.id, callbacks_.allocator_userp, &buffer, &owner,
                                    &attributes.memory_type, &attributes.memory_type_id));
  core::OutputPlacement placement{
      .data = static_cast<std::byte*>(buffer), .where = {}, .owner = owner};
  const auto type = abi_objects::FromMemoryType(attributes.memory_type);
  placement.where.id = attributes.memory_type_id;
  base::Status status;
  if (type) {
    placement.where.type = *type;
  } else {
    status = base::InvalidArgumentError("unknown memory type from response allocator");
  }
  if (status.ok() && allocator->describe_buffer != nullptr) {
    status = CallPlugin(allocator->describe_buffer, allocator, name, &attributes,
                        callbacks_.allocator_userp, owner);
    placement.cuda_ipc_handle = attributes.cuda_ipc_handle;
  }
  if (status.ok() && buffer == nullptr && byte_size > 0) {
    status = base::InternalError(fmt::format(
        "the response allocator gave no buffer for the {} bytes of output '{}'", byte_size, name));
  }
  if (!status.ok()) {
    ReleasePlacement(placement, byte_size);
    return status;
  }
  return std::optional(placement);
}

void InferenceCall::ReleasePlacement(const core::OutputPlacement& placement, size_t byte_size) {
  if (placement.data == nullptr) return;  // an output without bytes
  const base::Status status =
      CallPlugin(callbacks_.allocator->release, callbacks_.allocator,
                 static_cast<void*>(placement.data), placement.owner, byte_size,
                 abi_objects::ToMemoryType(placement.where.type), placement.where.id);
  if (!status.ok()) {
    NEREID_LOG(kError, "failed to release the buffer of an output: {}", status.ToString());
  }
}

void InferenceCall::OnRequestReleased(core::Request& request) {
  if (!is_submitted_) return;
  if (!is_decoupled_) cancellation_.Close();
  Submission* const submission = OwnSubmission();
  if (submission != nullptr && request.times.batch_start_ns == 0) [[unlikely]] {
    submission->holds_release = true;
    return;
  }
  CallRelease();
}

void InferenceCall::Send(core::ResponsePtr response, bool is_final) {
  Submission* const submission = OwnSubmission();
  if (submission != nullptr && submission->holds_release) [[unlikely]] {
    if (is_final && response != nullptr && !response->error().ok()) {
      submission->error = response->error();
      is_completed_ = true;
      cancellation_.Close();
      return;
    }
    submission->holds_release = false;
    CallRelease();
  }
  if (is_final) {
    is_completed_ = true;
    cancellation_.Close();
  }
  // The callback may delete everything.
  callbacks_.respond(ToHandle(response.release()),
                     is_final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, callbacks_.respond_userp);
}

void InferenceCall::OnRequestGone() {
  if (is_submitted_ && !is_completed_) [[unlikely]] {
    is_completed_ = true;
    core::ResponsePtr lost = LostResponse();
    if (Submission* const submission = OwnSubmission();
        submission != nullptr && submission->holds_release) {
      submission->error = lost->error();
    } else {
      callbacks_.respond(ToHandle(lost.release()), TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                         callbacks_.respond_userp);
    }
  }
  Unreference();
}

void InferenceCall::Unreference() {
  if (references_.fetch_sub(1) == 1) Pool::Give(this);
}

void InferenceCall::Recycle() {
  callbacks_ = {};
  handle_ = nullptr;
  ++number_;
  is_submitted_ = false;
  is_decoupled_ = false;
  is_completed_ = false;
  is_cancelled_.store(false);
}

}  // namespace nereid::capi
