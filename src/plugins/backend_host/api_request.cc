// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_Request*: how a backend reads a request that it owns.
#include <new>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "abi_objects/trace.h"
#include "backend_host/handles.h"
#include "core/model.h"

using nereid::abi_objects::RunApiCall;
using nereid::backend_host::FromHandle;
using nereid::backend_host::ToHandle;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;
using nereid::core::Request;

namespace {

// Returns `text` followed by a zero byte, valid as long as the arena.
std::string_view Terminate(nereid::memory::Arena& arena, std::string_view text) {
  const std::string_view copy = arena.CopyTerminated(text);
  if (copy.data() == nullptr) throw std::bad_alloc();
  return copy;
}

// Makes the texts of a request zero-terminated, as the C API requires. They are views into the
// client's data, so they are copied once, when a backend first needs them.
void MakeCStrings(Request& request) {
  if (request.has_c_strings) return;
  nereid::memory::Arena& arena = request.arena();
  request.id = Terminate(arena, request.id);
  if (auto* text = std::get_if<std::string_view>(&request.correlation_id)) {
    *text = Terminate(arena, *text);
  }
  for (nereid::core::Parameter& parameter : request.parameters) {
    parameter.name = Terminate(arena, parameter.name);
    if (auto* text = std::get_if<std::string_view>(&parameter.value)) {
      *text = Terminate(arena, *text);
    }
  }
  request.has_c_strings = true;
}

Status OutOfBounds(const std::string& prefix, uint32_t index, size_t count, const char* what) {
  return InvalidArgumentError(prefix + "out of bounds index " + std::to_string(index) +
                              ": request has " + std::to_string(count) + " " + what);
}

// If the client requested no outputs, all of the model's are produced. A padding request has none.
size_t OutputCount(const Request& request) {
  if (request.is_padding || !request.model) return 0;
  return request.outputs.empty() ? request.model->outputs().size() : request.outputs.size();
}

// A parameter in the form of the C API.
struct ParameterValue {
  TRITONSERVER_ParameterType type;
  const void* value;
};

ParameterValue ValueOf(const nereid::core::Parameter& parameter) {
  if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    return {TRITONSERVER_PARAMETER_STRING, text->data()};
  }
  if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    return {TRITONSERVER_PARAMETER_INT, number};
  }
  if (const auto* flag = std::get_if<bool>(&parameter.value)) {
    return {TRITONSERVER_PARAMETER_BOOL, flag};
  }
  return {TRITONSERVER_PARAMETER_DOUBLE, &std::get<double>(parameter.value)};
}

bool IsIterative(const nereid::core::Model& model) {
  const auto* const batching = model.config().sequence_batching();
  return batching != nullptr && batching->iterative_sequence;
}

// Has a request executed once more, or ends one that the server made for a single execution. Such a
// request is in no sequence, and while a model is loaded and warmed up it has no scheduler. Returns
// false and leaves the request alone if its model is not iterative.
bool Reschedule(nereid::core::RequestPtr& request) {
  if (!request->runs_once) return request->model->scheduler().Reschedule(request);
  if (request->model && !IsIterative(*request->model)) return false;
  request.reset();
  return true;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_RequestId(TRITONBACKEND_Request* request, const char** id) {
  return RunApiCall([&]() -> Status {
    MakeCStrings(*FromHandle(request));
    *id = FromHandle(request)->id.data();
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* is_cancelled) {
  *is_cancelled = FromHandle(request)->is_cancelled();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request* request,
                                                       uint64_t* id) {
  return RunApiCall([&]() -> Status {
    const Request& r = *FromHandle(request);
    const auto* number = std::get_if<uint64_t>(&r.correlation_id);
    if (number == nullptr) {
      return InvalidArgumentError(r.LogPrefix() +
                                  "correlation ID in request is not an unsigned int");
    }
    *id = *number;
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request* request,
                                                             const char** id) {
  return RunApiCall([&]() -> Status {
    Request& r = *FromHandle(request);
    const auto* text = std::get_if<std::string_view>(&r.correlation_id);
    if (text == nullptr) {
      return InvalidArgumentError(r.LogPrefix() + "correlation ID in request is not a string");
    }
    MakeCStrings(r);
    *id = text->data();
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    TRITONBACKEND_Request* request, uint64_t* timeout) {
  *timeout = FromHandle(request)->timeout_us;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestFlags(TRITONBACKEND_Request* request, uint32_t* flags) {
  *flags = FromHandle(request)->flags;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request* request,
                                                        uint32_t* count) {
  *count = static_cast<uint32_t>(FromHandle(request)->parameters.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestParameter(TRITONBACKEND_Request* request,
                                                   const uint32_t index, const char** key,
                                                   TRITONSERVER_ParameterType* type,
                                                   const void** vvalue) {
  return RunApiCall([&]() -> Status {
    Request& r = *FromHandle(request);
    if (index >= r.parameters.size()) {
      return OutOfBounds("", index, r.parameters.size(), "parameters");
    }
    MakeCStrings(r);
    const ParameterValue value = ValueOf(r.parameters[index]);
    *key = r.parameters[index].name.data();
    *type = value.type;
    *vvalue = value.value;
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count) {
  *count = static_cast<uint32_t>(FromHandle(request)->inputs.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputName(TRITONBACKEND_Request* request,
                                                   const uint32_t index, const char** input_name) {
  *input_name = nullptr;
  TRITONBACKEND_Input* input = nullptr;
  if (TRITONSERVER_Error* error = TRITONBACKEND_RequestInputByIndex(request, index, &input)) {
    return error;
  }
  return TRITONBACKEND_InputProperties(input, input_name, nullptr, nullptr, nullptr, nullptr,
                                       nullptr);
}

TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input) {
  return RunApiCall([&]() -> Status {
    Request& r = *FromHandle(request);
    *input = ToHandle(r.FindInput(name));
    if (*input == nullptr) {
      return InvalidArgumentError(r.LogPrefix() + "unknown request input name " + name);
    }
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request,
                                                      const uint32_t index,
                                                      TRITONBACKEND_Input** input) {
  return RunApiCall([&]() -> Status {
    Request& r = *FromHandle(request);
    if (index >= r.inputs.size()) {
      return OutOfBounds(r.LogPrefix(), index, r.inputs.size(), "inputs");
    }
    *input = ToHandle(&r.inputs[index]);
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
  *count = static_cast<uint32_t>(OutputCount(*FromHandle(request)));
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request,
                                                    const uint32_t index,
                                                    const char** output_name) {
  return RunApiCall([&]() -> Status {
    *output_name = nullptr;
    const Request& r = *FromHandle(request);
    if (index >= OutputCount(r)) {
      return OutOfBounds(r.LogPrefix(), index, OutputCount(r), "requested outputs");
    }
    const size_t at =
        r.outputs.empty() ? r.model->outputs_by_name()[index] : r.outputs[index].model_index;
    *output_name = r.model->outputs()[at].name.c_str();
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputBufferProperties(
    TRITONBACKEND_Request* request, const char* name, size_t* byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id) {
  return RunApiCall([&]() -> Status {
    const Request& r = *FromHandle(request);
    if (nereid::backend_host::IsReleased(r)) return nereid::backend_host::ReleasedError();
    const auto wish = nereid::abi_objects::FromMemoryType(*memory_type);
    if (!wish) return InvalidArgumentError("unknown memory type");
    NEREID_ASSIGN_OR_RETURN(
        const auto where,
        r.sink().PredictPlacement(r, name, byte_size, {.type = *wish, .id = *memory_type_id}));
    if (!where) {
      return nereid::base::UnavailableError(r.LogPrefix() + "Output properties are not available");
    }
    *memory_type = nereid::abi_objects::ToMemoryType(where->type);
    *memory_type_id = where->id;
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request,
                                                 uint32_t release_flags) {
  return RunApiCall([&]() -> Status {
    // An embedder's request is released by the server, when the backend that executes it releases
    // its own.
    if (!nereid::backend_host::FromAnyHandle(request).is_backend_request()) [[unlikely]]
      return {};
    if (nereid::backend_host::IsReleased(*FromHandle(request))) [[unlikely]] {
      return nereid::backend_host::ReleasedError();
    }
    nereid::core::RequestPtr released(FromHandle(request));
    if ((release_flags & TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) != 0) {
      nereid::core::RequestRef rescheduled(*released);
      if (Reschedule(released)) {
        // Without the reference, a cancellation while the request waits would destroy it before the
        // backend has finished with it.
        auto* const scope = nereid::core::ReleaseScope::Current();
        if (scope != nullptr) scope->Keep(std::move(rescheduled));
        return {};
      }
      // The backend still owns a request that could not be rescheduled.
      static_cast<void>(released.release());
      return InvalidArgumentError(
          "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is "
          "not configured to handle such a flag.");
    }
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_RequestTrace(TRITONBACKEND_Request* request,
                                               TRITONSERVER_InferenceTrace** trace) {
  *trace = nereid::abi_objects::ToHandle(FromHandle(request)->trace.get());
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
