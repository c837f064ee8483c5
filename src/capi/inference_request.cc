// SPDX-License-Identifier: Apache-2.0
#include "capi/inference_request.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "abi_objects/trace.h"
#include "base/object_pool.h"
#include "capi/version_text.h"
#include "core/model.h"

using nereid::base::InternalError;
using nereid::base::InvalidArgumentError;
using nereid::base::Result;
using nereid::base::Status;
using nereid::capi::InferenceCall;
using nereid::core::DataChunk;
using nereid::core::ModelTensor;
using nereid::tensor::DataType;

namespace {

using Pool = nereid::base::ObjectPool<TRITONSERVER_InferenceRequest>;

// Copies a text into the request's memory, with a zero byte after it.
std::string_view Keep(nereid::memory::Arena& arena, std::string_view text) {
  const std::string_view kept = arena.CopyTerminated(text);
  if (kept.data() == nullptr) throw std::bad_alloc();
  return kept;
}

}  // namespace

Result<TRITONSERVER_InferenceRequest*> TRITONSERVER_InferenceRequest::Create(
    TRITONSERVER_Server& server, const char* model_name, int64_t model_version) {
  NEREID_ASSIGN_OR_RETURN(
      nereid::core::ModelHandle model,
      server.engine.WaitForModel(model_name, nereid::capi::VersionText(model_version)));
  TRITONSERVER_InferenceRequest* const request = Pool::Take();
  request->server_ = &server;
  request->model_ = std::move(model);
  request->SetPriority(0);
  return request;
}

Status TRITONSERVER_InferenceRequest::Delete(TRITONSERVER_InferenceRequest* request) {
  if (request == nullptr) return {};
  if (request->is_submitted_.load()) {
    return InvalidArgumentError(request->LogPrefix() +
                                "the request can not be deleted before it is released");
  }
  Pool::Give(request);
  return {};
}

void TRITONSERVER_InferenceRequest::Recycle() {
  DropCall();
  id.clear();
  flags = 0;
  correlation_id = uint64_t{0};
  timeout_us = 0;
  callbacks = {};
  server_ = nullptr;
  model_.Reset();
  inputs_.clear();
  has_raw_input_ = false;
  has_gpu_inputs_ = false;
  outputs_.clear();
  parameters_.clear();
}

void TRITONSERVER_InferenceRequest::DropCall() {
  if (InferenceCall* const call = std::exchange(call_, nullptr); call != nullptr) call->Drop();
}

std::string TRITONSERVER_InferenceRequest::LogPrefix() const {
  return "[request id: " + (id.empty() ? std::string("<id_unknown>") : id) + "] ";
}

void TRITONSERVER_InferenceRequest::SetPriority(uint64_t priority) {
  const auto* const batching = model_->config().dynamic_batching();
  const uint64_t levels = batching ? batching->priority_levels : 0;
  const uint64_t usual = batching ? batching->default_priority_level : 0;
  priority_ = priority == 0 || priority > levels ? usual : priority;
}

size_t TRITONSERVER_InferenceRequest::FindInput(std::string_view name) const {
  const auto found = std::ranges::find(inputs_, name, &Input::name);
  return static_cast<size_t>(found - inputs_.begin());
}

Status TRITONSERVER_InferenceRequest::MissingInput(std::string_view name) const {
  return InvalidArgumentError(LogPrefix() + "input '" + std::string(name) +
                              "' does not exist in request");
}

TRITONSERVER_InferenceRequest::Input& TRITONSERVER_InferenceRequest::NewInput(
    std::string_view name) {
  Input& input = inputs_.emplace_back();
  const int index = model_->FindInput(name);
  if (index < 0) {
    input.own_name = name;
  } else {
    input.model_name = model_->inputs()[static_cast<size_t>(index)].name;
  }
  return input;
}

Status TRITONSERVER_InferenceRequest::AddInput(std::string_view name, DataType type,
                                               std::span<const int64_t> shape) {
  if (FindInput(name) < inputs_.size()) {
    return InvalidArgumentError(LogPrefix() + "input '" + std::string(name) +
                                "' already exists in request");
  }
  Input& input = NewInput(name);
  input.type = type;
  input.shape.Assign(shape);
  return {};
}

Status TRITONSERVER_InferenceRequest::AddRawInput(std::string_view name) {
  if (!inputs_.empty()) {
    return InvalidArgumentError(LogPrefix() + "raw input '" + std::string(name) +
                                "' can't be added to request with other inputs");
  }
  NewInput(name);
  has_raw_input_ = true;
  return {};
}

Status TRITONSERVER_InferenceRequest::RemoveInput(std::string_view name) {
  const size_t index = FindInput(name);
  if (index == inputs_.size()) return MissingInput(name);
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(index));
  if (index == 0) has_raw_input_ = false;
  return {};
}

void TRITONSERVER_InferenceRequest::RemoveAllInputs() {
  inputs_.clear();
  has_raw_input_ = false;
}

Status TRITONSERVER_InferenceRequest::AppendData(std::string_view name, DataChunk chunk,
                                                 std::string_view policy) {
  const size_t index = FindInput(name);
  if (index == inputs_.size()) return MissingInput(name);
  // A buffer without bytes adds nothing.
  if (chunk.size == 0) return {};
  if (chunk.where.type == nereid::memory::MemoryType::kGpu) has_gpu_inputs_ = true;
  Input& input = inputs_[index];
  if (!policy.empty()) {
    auto data =
        std::ranges::find(input.host_policies, policy, &nereid::core::HostPolicyData::policy);
    if (data == input.host_policies.end()) {
      data = input.host_policies.insert(data, {.policy = std::string(policy), .chunks = {}});
    }
    data->chunks.push_back(chunk);
    return {};
  }
  if (chunk.size > std::numeric_limits<size_t>::max() - input.byte_size) {
    return InvalidArgumentError(LogPrefix() + "input '" + std::string(name) + "' is too large");
  }
  if (input.byte_size == 0) {
    input.first = chunk;
  } else {
    input.more.push_back(chunk);
  }
  input.byte_size += chunk.size;
  return {};
}

Status TRITONSERVER_InferenceRequest::RemoveAllData(std::string_view name) {
  const size_t index = FindInput(name);
  if (index == inputs_.size()) return MissingInput(name);
  Input& input = inputs_[index];
  input.first = {};
  input.more.clear();
  input.host_policies.clear();
  input.byte_size = 0;
  return {};
}

Status TRITONSERVER_InferenceRequest::AddOutput(std::string_view name) {
  if (std::ranges::find(outputs_, name) != outputs_.end()) {
    return InvalidArgumentError(LogPrefix() + "output '" + std::string(name) +
                                "' already exists in request");
  }
  outputs_.emplace_back(name);
  return {};
}

void TRITONSERVER_InferenceRequest::RemoveOutput(std::string_view name) {
  std::erase(outputs_, name);
}

void TRITONSERVER_InferenceRequest::AddParameter(
    const char* name, std::variant<std::string, int64_t, bool, double> value) {
  parameters_.push_back({name, std::move(value)});
}

void TRITONSERVER_InferenceRequest::Fill(nereid::core::Request& request) const {
  nereid::memory::Arena& arena = request.arena();
  request.model = model_.Duplicate();
  request.id = Keep(arena, id);
  request.flags = flags;
  if (const auto* text = std::get_if<std::string>(&correlation_id)) {
    request.correlation_id = Keep(arena, *text);
  } else {
    request.correlation_id = std::get<uint64_t>(correlation_id);
  }
  request.priority = priority_;
  request.timeout_us = timeout_us;
  for (const Input& input : inputs_) {
    const bool is_own = !input.own_name.empty();
    nereid::core::RequestInput& added =
        request.AddInput(is_own ? Keep(arena, input.own_name) : input.model_name, input.type);
    added.shape = input.shape;
    added.first = input.first;
    added.more = input.more;
    added.byte_size = input.byte_size;
    added.host_policies = input.host_policies;
  }
  for (const std::string& name : outputs_) {
    const int index = model_->FindOutput(name);
    request.outputs.push_back(
        {.name = index < 0 ? Keep(arena, name)
                           : std::string_view(model_->outputs()[static_cast<size_t>(index)].name)});
  }
  for (const Parameter& parameter : parameters_) {
    nereid::core::Parameter& added = request.parameters.emplace_back();
    added.name = Keep(arena, parameter.name);
    std::visit(
        [&]<typename T>(const T& value) {
          if constexpr (std::is_same_v<T, std::string>) {
            added.value = Keep(arena, value);
          } else {
            added.value = value;
          }
        },
        parameter.value);
  }
  request.has_c_strings = true;
  request.has_gpu_inputs = has_gpu_inputs_;
}

Status TRITONSERVER_InferenceRequest::FillRawInput(nereid::core::Request& request) const {
  if (model_->inputs().size() != 1) {
    return InvalidArgumentError(LogPrefix() + "Raw request must only have 1 input (found " +
                                std::to_string(inputs_.size()) + ") to be deduced but got " +
                                std::to_string(model_->inputs().size()) + " inputs in '" +
                                model_->name() + "' model configuration");
  }
  const ModelTensor& expected = model_->inputs().front();
  nereid::core::RequestInput& input = request.inputs.front();
  input.name = expected.name;
  input.type = expected.type;
  input.shape.Clear();
  if (model_->max_batch_size() != 0) input.shape.PushBack(1);
  std::optional<size_t> open;  // the dimension that the data determines
  for (const int64_t dim : expected.dims.dims()) {
    if (dim == nereid::tensor::kWildcard) {
      if (open) {
        return InvalidArgumentError(LogPrefix() + "The shape of the raw input '" + expected.name +
                                    "' can not be deduced because there are more than one "
                                    "variable-sized dimension");
      }
      open = input.shape.rank();
      input.shape.PushBack(1);
    } else {
      input.shape.PushBack(dim);
    }
  }
  if (expected.type == DataType::kBytes) {
    if (open || nereid::tensor::ElementCount(input.shape.dims()) != 1) {
      return InvalidArgumentError(LogPrefix() + "For BYTE datatype raw input '" + expected.name +
                                  "', the model must have input shape [1]");
    }
    if (!input.host_policies.empty()) {
      return InvalidArgumentError(LogPrefix() +
                                  "Raw input with data associated with a host policy setting is "
                                  "not currently supported");
    }
    // The one element is preceded by its length.
    const auto length = static_cast<uint32_t>(input.byte_size);
    std::byte* const place = request.arena().Allocate(sizeof(length), alignof(uint32_t));
    if (place == nullptr) throw std::bad_alloc();
    std::memcpy(place, &length, sizeof(length));
    if (input.byte_size > 0) input.more.insert(input.more.begin(), input.first);
    input.first = {.data = place, .size = sizeof(length), .where = {}};
    input.byte_size += sizeof(length);
  } else if (open) {
    const auto unit = nereid::tensor::ByteSize(expected.type, input.shape.dims());
    if (unit && *unit > 0) input.shape[*open] = static_cast<int64_t>(input.byte_size / *unit);
  }
  return {};
}

Status TRITONSERVER_InferenceRequest::Submit(TRITONSERVER_InferenceTrace* trace_handle) {
  std::shared_ptr<nereid::observe::Trace> trace;
  if (trace_handle != nullptr) [[unlikely]] {
    // A trace belongs to the server from here on, even if its request is refused.
    trace = nereid::observe::Trace::Share(
        std::unique_ptr<nereid::observe::Trace>(nereid::abi_objects::FromHandle(trace_handle)));
    trace->Describe(model_->name(), model_->version(), id);
  }
  if (is_submitted_.load()) {
    return InternalError(LogPrefix() +
                         "Invalid request state transition from PENDING to INITIALIZED");
  }
  DropCall();
  call_ = InferenceCall::Create(callbacks);
  InferenceCall* const call = call_;
  nereid::core::RequestPtr request = call->MakeRequest();
  Fill(*request);
  if (has_raw_input_) NEREID_RETURN_IF_ERROR(FillRawInput(*request));
  NEREID_RETURN_IF_ERROR(server_->engine.Prepare(*request));
  if (callbacks.release == nullptr || callbacks.respond == nullptr ||
      callbacks.allocator == nullptr) {
    return InvalidArgumentError(LogPrefix() +
                                "the request needs a release callback and a response callback");
  }
  if (trace != nullptr) [[unlikely]] {
    request->trace = std::move(trace);
    request->trace->Report(nereid::observe::TraceActivity::kRequestStart,
                           request->times.request_start_ns);
  }
  is_submitted_.store(true);
  // From here on this object may be released and deleted, unless an error is returned.
  const Status status = call->Submit(std::move(request), this);
  if (!status.ok()) MarkReleased();
  return status;
}

Status TRITONSERVER_InferenceRequest::Cancel() {
  if (call_ == nullptr) {
    return InternalError(
        "It is not possible to cancel an inference request before calling "
        "TRITONSERVER_InferAsync.");
  }
  call_->Cancel(server_->engine);
  return {};
}

nereid::core::RequestRef TRITONSERVER_InferenceRequest::Refer() {
  if (call_ != nullptr) return call_->Refer(model_.Duplicate());
  // The request has not been submitted.
  const nereid::core::RequestPtr stand_in = InferenceCall::MakeStandIn();
  stand_in->model = model_.Duplicate();
  return nereid::core::RequestRef(*stand_in);
}

Result<bool> TRITONSERVER_InferenceRequest::IsCancelled() const {
  if (call_ == nullptr) {
    return InternalError(
        "It is not possible to query cancellation status before calling "
        "TRITONSERVER_InferAsync.");
  }
  return call_->is_cancelled();
}
