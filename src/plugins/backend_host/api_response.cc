// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_Response*, ResponseFactory* and Output*: responding to a request.
#include <memory>
#include <new>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "backend_host/handles.h"
#include "backend_host/send_response.h"
#include "base/no_wait.h"
#include "core/model.h"
#include "core/reshape.h"
#include "nereid/backend_outputs.h"
#include "nereid/backend_responses.h"

using nereid::abi_objects::FromMemoryType;
using nereid::abi_objects::RunApiCall;
using nereid::abi_objects::ToMemoryType;
using nereid::backend_host::FromHandle;
using nereid::backend_host::ResponseFactory;
using nereid::backend_host::ToHandle;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;
using nereid::core::Response;
using nereid::core::ResponseOutput;

namespace {

bool IsFinal(uint32_t flags) { return (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0; }

Status NullResponseError() { return InvalidArgumentError("response was nullptr"); }

template <typename Value>
TRITONSERVER_Error* SetParameter(TRITONBACKEND_Response* response, const char* name, Value value) {
  return RunApiCall([&]() -> Status {
    if (response == nullptr) return NullResponseError();
    FromHandle(response)->AddParameter({.name = name, .value = value});
    return {};
  });
}

Status AddOutput(Response& response, TRITONBACKEND_Output** output, std::string_view name,
                 TRITONSERVER_DataType datatype, std::span<const int64_t> shape) {
  const nereid::core::Model& model = *response.request().model;
  if (model.FindOutput(name) < 0) {
    return InvalidArgumentError("unexpected inference output '" + std::string(name) +
                                "' for model '" + model.name() + "'");
  }
  if (datatype <= TRITONSERVER_TYPE_INVALID || datatype >= nereid::tensor::kDataTypeCount) {
    return InvalidArgumentError("invalid data type of output '" + std::string(name) + "'");
  }
  ResponseOutput* const added =
      response.AddOutput(name, static_cast<nereid::tensor::DataType>(datatype), shape);
  if (added == nullptr) throw std::bad_alloc();
  const nereid::core::ModelTensor& tensor = model.outputs()[added->model_index];
  if (tensor.has_reshape) {
    NEREID_RETURN_IF_ERROR(
        nereid::core::ReshapeForClient(tensor, model.max_batch_size() > 0, added->shape));
  }
  *output = ToHandle(added);
  return {};
}

void Describe(const ResponseOutput& output, TRITONSERVER_DataType* datatype, const int64_t** shape,
              uint64_t* dim_count) {
  *datatype = static_cast<TRITONSERVER_DataType>(output.type);
  *shape = output.shape.data();
  *dim_count = output.shape.rank();
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory** factory,
                                                     TRITONBACKEND_Request* request) {
  return RunApiCall([&]() -> Status {
    *factory = nullptr;
    nereid::core::RequestHandle& handle = nereid::backend_host::FromAnyHandle(request);
    if (handle.is_backend_request() && !FromHandle(request)->model) [[unlikely]] {
      return nereid::backend_host::ReleasedError();
    }
    *factory = ToHandle(new ResponseFactory{.request = handle.Refer()});
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory* factory) {
  delete FromHandle(factory);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory* factory,
                                                           const uint32_t send_flags) {
  return RunApiCall([&]() -> Status {
    // Flags without FINAL need no action.
    return IsFinal(send_flags) ? nereid::backend_host::SendEnd(*FromHandle(factory)->request)
                               : Status();
  });
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory* factory,
                                                             bool* is_cancelled) {
  *is_cancelled = FromHandle(factory)->request->is_cancelled();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
  return RunApiCall([&]() -> Status {
    *response = nullptr;
    nereid::core::Request& r = *FromHandle(request);
    // A request released in this execution may still get a response, as with a factory.
    if (!r.model) [[unlikely]]
      return nereid::backend_host::ReleasedError();
    *response = ToHandle(Response::Create(r).release());
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response** response,
                                                         TRITONBACKEND_ResponseFactory* factory) {
  return RunApiCall([&]() -> Status {
    *response = nullptr;
    *response = ToHandle(Response::Create(*FromHandle(factory)->request).release());
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
  nereid::core::ResponsePtr deleted(FromHandle(response));
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response* response,
                                                             const char* name, const char* value) {
  return SetParameter(response, name, std::string_view(value));
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response* response,
                                                          const char* name, const int64_t value) {
  return SetParameter(response, name, value);
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response* response,
                                                           const char* name, const bool value) {
  return SetParameter(response, name, value);
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response* response,
                                                             const char* name, const double value) {
  return SetParameter(response, name, value);
}

TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType datatype,
                                                 const int64_t* shape, const uint32_t dims_count) {
  return RunApiCall([&]() -> Status {
    if (response == nullptr) return NullResponseError();
    *output = nullptr;
    return AddOutput(*FromHandle(response), output, name, datatype, {shape, dims_count});
  });
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response,
                                               const uint32_t send_flags,
                                               TRITONSERVER_Error* error) {
  return RunApiCall([&]() -> Status {
    if (response == nullptr) return NullResponseError();
    nereid::core::ResponsePtr sent(FromHandle(response));
    if (error != nullptr) sent->SetError(nereid::abi_objects::ToStatus(error));
    return nereid::backend_host::SendResponse(std::move(sent), IsFinal(send_flags));
  });
}

TRITONSERVER_Error* NEREIDBACKEND_ResponseTrySend(TRITONBACKEND_Response* response,
                                                  uint32_t send_flags, TRITONSERVER_Error* error,
                                                  bool* sent) {
  return RunApiCall([&]() -> Status {
    if (response == nullptr) return NullResponseError();
    *sent = !FromHandle(response)->request().sink().WouldWait();
    if (!*sent) return {};
    const nereid::base::NoWaitScope no_wait;
    nereid::core::ResponsePtr made(FromHandle(response));
    if (error != nullptr) made->SetError(nereid::abi_objects::ToStatus(error));
    return nereid::backend_host::SendResponse(std::move(made), IsFinal(send_flags));
  });
}

TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               const uint64_t buffer_byte_size,
                                               TRITONSERVER_MemoryType* memory_type,
                                               int64_t* memory_type_id) {
  return RunApiCall([&]() -> Status {
    *buffer = nullptr;
    ResponseOutput& o = *FromHandle(output);
    const auto wish = FromMemoryType(*memory_type);
    if (!wish) return InvalidArgumentError("unknown memory type");
    NEREID_RETURN_IF_ERROR(o.owner->AllocateBuffer(o, buffer_byte_size,
                                                   {.type = *wish, .id = *memory_type_id},
                                                   o.owner->request().clears_outputs));
    *buffer = o.data;
    *memory_type = ToMemoryType(o.where.type);
    *memory_type_id = o.where.id;
    return {};
  });
}

TRITONSERVER_Error* NEREIDBACKEND_OutputLend(TRITONBACKEND_Output* output, const void* buffer,
                                             uint64_t byte_size, NEREIDBACKEND_ReleaseFn_t release,
                                             void* user) {
  return RunApiCall([&]() -> Status {
    ResponseOutput& o = *FromHandle(output);
    return o.owner->LendBuffer(o, static_cast<const std::byte*>(buffer), byte_size, release, user);
  });
}

TRITONSERVER_Error* TRITONBACKEND_OutputBufferAttributes(
    TRITONBACKEND_Output* output, TRITONSERVER_BufferAttributes** buffer_attributes) {
  return RunApiCall([&]() -> Status {
    *buffer_attributes = nullptr;
    const ResponseOutput& o = *FromHandle(output);
    std::byte* const place = o.owner->arena().Allocate(sizeof(TRITONSERVER_BufferAttributes),
                                                       alignof(TRITONSERVER_BufferAttributes));
    if (place == nullptr) throw std::bad_alloc();
    *buffer_attributes =
        new (place) TRITONSERVER_BufferAttributes{.memory_type = ToMemoryType(o.where.type),
                                                  .memory_type_id = o.where.id,
                                                  .byte_size = o.byte_size,
                                                  .cuda_ipc_handle = o.cuda_ipc_handle};
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response* response,
                                                                const char* name,
                                                                TRITONSERVER_DataType* datatype,
                                                                const int64_t** shape,
                                                                uint64_t* dim_count) {
  return RunApiCall([&]() -> Status {
    const Response& r = *FromHandle(response);
    for (size_t i = 0; i < r.output_count(); ++i) {
      if (r.output(i).name != name) continue;
      Describe(r.output(i), datatype, shape, dim_count);
      return {};
    }
    return nereid::base::NotFoundError("Output name " + std::string(name) + "not found.");
  });
}

TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response* response,
                                                          const uint32_t index, const char** name,
                                                          TRITONSERVER_DataType* datatype,
                                                          const int64_t** shape,
                                                          uint64_t* dim_count) {
  return RunApiCall([&]() -> Status {
    const Response& r = *FromHandle(response);
    if (index >= r.output_count()) {
      return InvalidArgumentError("out of bounds index " + std::to_string(index) +
                                  ": response has " + std::to_string(r.output_count()) +
                                  " outputs");
    }
    // A response has only outputs of the model, whose names are zero-terminated.
    *name = r.output(index).name.data();
    Describe(r.output(index), datatype, shape, dim_count);
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
