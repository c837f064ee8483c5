// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_InferenceResponse*. Texts: core/src/tritonserver.cc of Triton.
#include "capi/inference_response.h"

#include <string>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "core/model.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::Status;
using nereid::capi::FromHandle;
using nereid::core::Response;
using nereid::core::ResponseOutput;

namespace {

Status OutOfBounds(uint32_t index, size_t count, const char* what) {
  return nereid::base::InvalidArgumentError("out of bounds index " + std::to_string(index) +
                                            ": response has " + std::to_string(count) + " " + what);
}

// Texts end with a zero byte.
TRITONSERVER_ParameterType Describe(const nereid::core::Parameter& parameter, const void** value) {
  if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    *value = text->data();
    return TRITONSERVER_PARAMETER_STRING;
  }
  if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    *value = number;
    return TRITONSERVER_PARAMETER_INT;
  }
  if (const auto* flag = std::get_if<bool>(&parameter.value)) {
    *value = flag;
    return TRITONSERVER_PARAMETER_BOOL;
  }
  *value = &std::get<double>(parameter.value);
  return TRITONSERVER_PARAMETER_DOUBLE;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_InferenceResponseDelete(
    TRITONSERVER_InferenceResponse* inference_response) {
  return RunApiCall([&]() -> Status {
    const nereid::core::ResponsePtr deleted(FromHandle(inference_response));
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseError(
    TRITONSERVER_InferenceResponse* inference_response) {
  return nereid::abi_objects::NewError(FromHandle(inference_response)->error());
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseModel(
    TRITONSERVER_InferenceResponse* inference_response, const char** model_name,
    int64_t* model_version) {
  const auto& model = FromHandle(inference_response)->request().model;
  *model_name = model ? model->name().c_str() : "<unknown>";
  *model_version = model ? model->version() : -1;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseId(
    TRITONSERVER_InferenceResponse* inference_response, const char** request_id) {
  // The id ends with a zero byte in every request of the C API.
  *request_id = FromHandle(inference_response)->request().id.data();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameterCount(
    TRITONSERVER_InferenceResponse* inference_response, uint32_t* count) {
  *count = static_cast<uint32_t>(FromHandle(inference_response)->parameters().size());
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameter(
    TRITONSERVER_InferenceResponse* inference_response, const uint32_t index, const char** name,
    TRITONSERVER_ParameterType* type, const void** vvalue) {
  return RunApiCall([&]() -> Status {
    const auto& parameters = FromHandle(inference_response)->parameters();
    if (index >= parameters.size()) return OutOfBounds(index, parameters.size(), "parameters");
    *name = parameters[index].name.data();
    *type = Describe(parameters[index], vvalue);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutputCount(
    TRITONSERVER_InferenceResponse* inference_response, uint32_t* count) {
  *count = static_cast<uint32_t>(FromHandle(inference_response)->output_count());
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse* inference_response, const uint32_t index, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint64_t* dim_count, const void** base,
    size_t* byte_size, TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id,
    void** userp) {
  return RunApiCall([&]() -> Status {
    const Response& response = *FromHandle(inference_response);
    if (index >= response.output_count()) {
      return OutOfBounds(index, response.output_count(), "outputs");
    }
    const ResponseOutput& output = response.output(index);
    *name = output.name.data();
    *datatype = static_cast<TRITONSERVER_DataType>(output.type);
    *shape = output.shape.data();
    *dim_count = output.shape.rank();
    *base = output.data;
    *byte_size = output.byte_size;
    *memory_type = nereid::abi_objects::ToMemoryType(output.where.type);
    *memory_type_id = output.where.id;
    *userp = output.placement_owner;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse* inference_response, const uint32_t index,
    const size_t class_index, const char** label) {
  return RunApiCall([&]() -> Status {
    *label = nullptr;
    const Response& response = *FromHandle(inference_response);
    if (index >= response.output_count()) {
      return OutOfBounds(index, response.output_count(), "outputs");
    }
    const auto& outputs = response.request().model->outputs();
    const uint32_t at = response.output(index).model_index;
    if (at >= outputs.size() || class_index >= outputs[at].labels.size()) return {};
    const std::string& text = outputs[at].labels[class_index];
    if (!text.empty()) *label = text.c_str();
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
