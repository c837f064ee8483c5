// SPDX-License-Identifier: Apache-2.0
#include "response.h"

#include "errors.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

TRITONSERVER_Error* AllocateOutput(TRITONSERVER_ResponseAllocator* /*allocator*/,
                                   const char* /*tensor_name*/, size_t byte_size,
                                   TRITONSERVER_MemoryType /*memory_type*/,
                                   int64_t /*memory_type_id*/, void* /*userp*/, void** buffer,
                                   void** buffer_userp, TRITONSERVER_MemoryType* actual_memory_type,
                                   int64_t* actual_memory_type_id) {
  Block* const block = Block::Create(byte_size);
  if (block == nullptr) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no memory for an output");
  }
  *buffer = block->data();
  *buffer_userp = block;
  *actual_memory_type = TRITONSERVER_MEMORY_CPU;
  *actual_memory_type_id = 0;
  return nullptr;
}

TRITONSERVER_Error* ReleaseOutput(TRITONSERVER_ResponseAllocator* /*allocator*/, void* /*buffer*/,
                                  void* buffer_userp, size_t /*byte_size*/,
                                  TRITONSERVER_MemoryType /*memory_type*/,
                                  int64_t /*memory_type_id*/) {
  if (buffer_userp != nullptr) static_cast<Block*>(buffer_userp)->Unreference();
  return nullptr;
}

TRITONSERVER_Error* PredictOutput(TRITONSERVER_ResponseAllocator* /*allocator*/, void* /*userp*/,
                                  const char* /*tensor_name*/, size_t* /*byte_size*/,
                                  TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id) {
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}

TRITONSERVER_Error* DescribeOutput(TRITONSERVER_ResponseAllocator* /*allocator*/,
                                   const char* /*tensor_name*/,
                                   TRITONSERVER_BufferAttributes* attributes, void* /*userp*/,
                                   void* buffer_userp) {
  if (auto* const error =
          TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_CPU)) {
    return error;
  }
  if (auto* const error = TRITONSERVER_BufferAttributesSetMemoryTypeId(attributes, 0)) return error;
  return TRITONSERVER_BufferAttributesSetByteSize(attributes,
                                                  static_cast<Block*>(buffer_userp)->size());
}

TRITONSERVER_ResponseAllocator* MakeAllocator() {
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  Check(TRITONSERVER_ResponseAllocatorNew(&allocator, AllocateOutput, ReleaseOutput, nullptr));
  Check(TRITONSERVER_ResponseAllocatorSetQueryFunction(allocator, PredictOutput));
  Check(TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(allocator, DescribeOutput));
  return allocator;
}

}  // namespace

TRITONSERVER_ResponseAllocator* OutputAllocator() {
  static TRITONSERVER_ResponseAllocator* const allocator = MakeAllocator();
  return allocator;
}

void ResponseDeleter::operator()(TRITONSERVER_InferenceResponse* response) const {
  Ignore(TRITONSERVER_InferenceResponseDelete(response));
}

Response::Response(TRITONSERVER_InferenceResponse* response, bool is_final,
                   const Classification* classification)
    : is_final_(is_final), classification_(classification) {
  if (response == nullptr) return;
  is_empty_ = false;
  ResponseHandle handle(response);
  try {
    Read(response);
  } catch (const std::exception& error) {
    // An exception must not leave this callback of the server, so it becomes the response's error.
    error_code_ = TRITONSERVER_ERROR_INTERNAL;
    error_ = std::string("the response could not be read: ") + error.what();
    outputs_.clear();
  }
  if (classification != nullptr && error_code_ < 0) kept_ = std::move(handle);
}

void Response::Read(TRITONSERVER_InferenceResponse* response) {
  if (TRITONSERVER_Error* const error = TRITONSERVER_InferenceResponseError(response)) {
    error_code_ = TRITONSERVER_ErrorCode(error);
    error_ = TRITONSERVER_ErrorMessage(error);
    TRITONSERVER_ErrorDelete(error);
  }
  const char* text = nullptr;
  Check(TRITONSERVER_InferenceResponseModel(response, &text, &model_version_));
  if (text != nullptr) model_name_ = text;
  text = nullptr;
  Check(TRITONSERVER_InferenceResponseId(response, &text));
  if (text != nullptr) request_id_ = text;
  ReadParameters(response);
  if (error_code_ < 0) ReadOutputs(response);
}

void Response::ReadParameters(TRITONSERVER_InferenceResponse* response) {
  uint32_t count = 0;
  Check(TRITONSERVER_InferenceResponseParameterCount(response, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    Check(TRITONSERVER_InferenceResponseParameter(response, i, &name, &type, &value));
    switch (type) {
      case TRITONSERVER_PARAMETER_STRING:
        parameters_.emplace_back(name, std::string(static_cast<const char*>(value)));
        break;
      case TRITONSERVER_PARAMETER_INT:
        parameters_.emplace_back(name, *static_cast<const int64_t*>(value));
        break;
      case TRITONSERVER_PARAMETER_BOOL:
        parameters_.emplace_back(name, *static_cast<const bool*>(value));
        break;
      case TRITONSERVER_PARAMETER_DOUBLE:
        parameters_.emplace_back(name, *static_cast<const double*>(value));
        break;
      default:
        break;  // the C API has no size for the bytes of a response
    }
  }
}

void Response::ReadOutputs(TRITONSERVER_InferenceResponse* response) {
  uint32_t count = 0;
  Check(TRITONSERVER_InferenceResponseOutputCount(response, &count));
  outputs_.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    const int64_t* shape = nullptr;
    uint64_t dimensions = 0;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    void* userp = nullptr;
    Output& output = outputs_.emplace_back();
    Check(TRITONSERVER_InferenceResponseOutput(response, i, &name, &type, &shape, &dimensions,
                                               &output.data, &output.size, &memory_type,
                                               &output.memory_type_id, &userp));
    output.name = name;
    output.type = type;
    output.shape.assign(shape, shape + dimensions);
    output.memory_type = memory_type;
    auto* const block = static_cast<Block*>(userp);
    if (block != nullptr) {
      block->Reference();
      output.owner = Buffer(block);
    } else if (output.size > 0) {
      // The server did not request memory for this output.
      output.owner = Buffer::CopyOf(output.data, output.size);
      output.data = output.owner.data();
    }
  }
}

py::tuple Response::ToPython() {
  if (is_empty_) {
    const py::none none;
    return py::make_tuple(none, none, none, none, none, none, none, is_final_);
  }
  py::object error = py::none();
  if (error_code_ >= 0)
    error = MakeException(static_cast<TRITONSERVER_Error_Code>(error_code_), error_);
  py::dict parameters;
  for (const auto& [name, value] : parameters_) {
    parameters[ToText(name)] = std::visit(
        [](const auto& one) -> py::object {
          if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::string>)
            return ToText(one);
          else
            return py::cast(one);
        },
        value);
  }
  const py::object classes = ClassesToPython();
  py::list outputs(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    py::tuple shape(output.shape.size());
    for (size_t d = 0; d < output.shape.size(); ++d) shape[d] = output.shape[d];
    outputs[i] =
        py::make_tuple(ToText(output.name), output.type, std::move(shape),
                       reinterpret_cast<uintptr_t>(output.data), output.size, output.memory_type,
                       output.memory_type_id, py::cast(std::move(output.owner)));
  }
  kept_.reset();
  return py::make_tuple(error, ToText(model_name_), model_version_, ToText(request_id_), parameters,
                        outputs, classes, is_final_);
}

}  // namespace nereid::python
