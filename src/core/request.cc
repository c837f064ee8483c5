// SPDX-License-Identifier: Apache-2.0
#include "core/request.h"

#include <algorithm>
#include <utility>

#include "base/empty_list.h"
#include "base/object_pool.h"
#include "core/cancel_handle.h"
#include "core/model.h"
#include "core/open_requests.h"
#include "core/release_scope.h"
#include "core/response.h"
#include "core/trace_tensors.h"

namespace nereid::core {

using RequestPool = base::ObjectPool<Request>;

void RequestInput::AppendMore(const DataChunk& chunk) { more.push_back(chunk); }

void RequestRef::Drop(Request& request) { request.Unreference(); }

RequestPtr Request::Create(ResponseSink& sink) {
  Request* request = RequestPool::Take();
  request->sink_ = &sink;
  // Relaxed: no other thread has it yet, and passing it to one synchronises this.
  request->references_.store(1, std::memory_order_relaxed);
  return RequestPtr(request);
}

inline void Request::LeaveBackend() {
  if (OpenRequests* const open = std::exchange(open_in, nullptr)) open->Remove();
}

void RequestDeleter::operator()(Request* request) const {
  if (request->trace != nullptr) [[unlikely]] {
    request->trace->Report(observe::TraceActivity::kRequestEnd, base::NowNs());
  }
  request->sink_->OnRequestReleased(*request);
  request->buffers_.clear();
  if (request->is_completed()) request->LeaveBackend();
  if (ReleaseScope* const scope = ReleaseScope::Current(); scope != nullptr) {
    request->next = request;  // read by ReleaseScope::IsReleased
    return scope->Keep(RequestRef::Adopt(request));
  }
  request->Unreference();
}

void Request::Unreference() {
  uint32_t before = references_.load();
  do {
    if (before > kKept && (before & kKeepers) == 1) [[unlikely]] {
      DropObservers();
      before = references_.load();
    }
  } while (!references_.compare_exchange_weak(before, before - 1));
  if (before == 1) End();
}

void Request::DropObservers() {
  if ((references_.load() & kKept) != 0) sink_->OnAbandoned();
  // The request keeps the owner of the handle. If another thread has just taken the handle, that
  // thread adds a reference, which will be the last.
  if ((references_.load() & kHandle) != 0) handle_->Close();
}

void Request::DropHandle() {
  if (references_.fetch_sub(kHandle) == kHandle) End();
}

void Request::End() {
  // While the model is pinned, and with it the instance.
  LeaveBackend();
  ResponseSink* const sink = sink_;
  RequestPool::Give(this);
  sink->OnRequestGone();
}

void Request::Recycle() {
  model.Reset();
  base::EmptyList(inputs);
  base::EmptyList(outputs);
  parameters.clear();
  caller.reset();
  trace.reset();
  buffers_.clear();
  arena_.Reset();
  id = {};
  // Neighbours in the order of the members, without a branch between them: the compiler writes
  // several at once.
  flags = 0;
  correlation_id = uint64_t{0};
  priority = 0;
  timeout_us = 0;
  deadline_ns = 0;
  quota_left = {};
  round = nullptr;
  batch_size = 0;
  times = {};
  next = nullptr;
  previous = nullptr;
  queue = nullptr;
  expires_at_ns = 0;
  is_padding = false;
  runs_once = false;
  was_rescheduled = false;
  is_counted = true;
  states = nullptr;
  has_gpu_inputs = false;
  clears_outputs = false;
  has_c_strings = false;
  sink_ = nullptr;
  handle_ = nullptr;
  // Relaxed, as in Create: no other thread has it any more.
  is_cancelled_.store(false, std::memory_order_relaxed);
  is_completed_.store(false, std::memory_order_relaxed);
  has_responded_ = false;
}

RequestInput& Request::AddInput(std::string_view name, tensor::DataType type) {
  RequestInput& input = inputs.emplace_back();
  input.owner = this;
  input.name = name;
  input.type = type;
  return input;
}

RequestInput& Request::AddServerInput(std::string_view name, tensor::DataType type,
                                      std::span<const int64_t> shape, DataChunk data) {
  RequestInput& input = AddInput(name, type);
  input.model_index = kServerInput;
  input.shape.Assign(shape);
  input.Append(data);
  return input;
}

void Request::RemoveServerInputs() {
  std::erase_if(inputs,
                [](const RequestInput& input) { return input.model_index == kServerInput; });
}

RequestInput* Request::FindInput(std::string_view name) {
  const auto found = std::ranges::find(inputs, name, &RequestInput::name);
  return found == inputs.end() ? nullptr : &*found;
}

void Request::TraceQueued() {
  trace->Report(observe::TraceActivity::kQueueStart, times.queue_start_ns);
  if (trace->wants_tensors()) TraceInputs(*this);
}

void Request::NoteResponse(const Response& response) {
  const bool is_first = !std::exchange(has_responded_, true);
  if (is_first && model && model->statistics().times_first_responses() && is_counted && !is_padding)
      [[unlikely]] {
    model->statistics().RecordFirstResponse(times.request_start_ns);
  }
  if (trace != nullptr && trace->wants_tensors()) [[unlikely]]
    TraceOutputs(*trace, response);
}

std::string Request::LogPrefix() const {
  return "[request id: " + (id.empty() ? std::string("<id_unknown>") : std::string(id)) + "] ";
}

void CompleteWithPrefixedError(RequestPtr request, base::Status error) {
  error = error.WithPrefix(request->LogPrefix());
  CompleteWithError(std::move(request), std::move(error));
}

void CompleteWithError(RequestPtr request, base::Status error) {
  ResponsePtr response = Response::Create(*request);
  response->SetError(std::move(error));
  Complete(std::move(request), std::move(response));
}

void Complete(RequestPtr request, ResponsePtr response) {
  // A backend that returned the request may still hold a response to it, which is then too late.
  if (!request->MarkCompleted()) return;
  request->NoteResponse(*response);
  ResponseSink& sink = request->sink();
  // Released first, so that a client that has the response may reuse the inputs.
  request.reset();
  sink.Send(std::move(response), true);
}

}  // namespace nereid::core
