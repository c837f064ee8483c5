// SPDX-License-Identifier: Apache-2.0
#include "python_backend/infer_response.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string_view>

namespace nereid::python {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

template <typename Value>
void Append(std::string& to, const Value& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Error AppendOutput(std::string& to, const Region& region, TRITONSERVER_InferenceResponse* response,
                   uint32_t index, std::vector<BlockPool::Block*>& blocks) {
  const char* name = nullptr;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  const int64_t* shape = nullptr;
  uint64_t dims = 0;
  const void* base = nullptr;
  size_t size = 0;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  void* user = nullptr;
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseOutput(response, index, &name, &datatype, &shape,
                                                      &dims, &base, &size, &memory_type,
                                                      &memory_type_id, &user));
  const std::string_view text = name;
  const bool has_data = size != 0 && user != nullptr;
  Append(to, TensorRecord{.datatype = static_cast<uint32_t>(datatype),
                          .dims = static_cast<uint32_t>(dims),
                          .name_size = static_cast<uint32_t>(text.size()),
                          .data = has_data ? static_cast<uint64_t>(static_cast<const char*>(base) -
                                                                   region.base())
                                           : 0,
                          .byte_size = size});
  to.append(reinterpret_cast<const char*>(shape), dims * sizeof(*shape));
  to += text;
  to.resize(Padded(to.size()));
  if (has_data) blocks.push_back(static_cast<BlockPool::Block*>(user));
  return {};
}

Result<std::string> ResponseParameters(TRITONSERVER_InferenceResponse* response) {
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseParameterCount(response, &count));
  if (count == 0) return std::string();
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  writer.StartObject();
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    NEREID_KIT_TRY(TRITONSERVER_InferenceResponseParameter(response, i, &name, &type, &value));
    writer.Key(name);
    if (type == TRITONSERVER_PARAMETER_INT) {
      writer.Int64(*static_cast<const int64_t*>(value));
    } else if (type == TRITONSERVER_PARAMETER_BOOL) {
      writer.Bool(*static_cast<const bool*>(value));
    } else if (type == TRITONSERVER_PARAMETER_STRING) {
      writer.String(static_cast<const char*>(value));
    } else {
      return Error::Internal(StrCat("Unsupported parameter type for parameter '", name, "'."));
    }
  }
  writer.EndObject();
  return std::string(text.GetString(), text.GetSize());
}

}  // namespace

Result<std::string> EncodeTensors(const Region& region, TRITONSERVER_InferenceResponse* response,
                                  bool is_last, std::vector<BlockPool::Block*>& blocks) {
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseError(response));
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseOutputCount(response, &count));
  NEREID_KIT_ASSIGN(const std::string parameters, ResponseParameters(response));
  std::string text;
  Append(text, ReplyRecord{.kind = static_cast<uint32_t>(ResponseKind::kTensors),
                           .is_last = is_last,
                           .tensors = count,
                           .text_size = static_cast<uint32_t>(parameters.size())});
  for (uint32_t i = 0; i < count; ++i) {
    NEREID_KIT_TRY(AppendOutput(text, region, response, i, blocks).Release());
  }
  return text + parameters;
}

std::string EncodeError(const Error& error, bool is_last) {
  const std::string message = error.message();
  std::string text;
  Append(text, ReplyRecord{.kind = static_cast<uint32_t>(ResponseKind::kError),
                           .is_last = is_last,
                           .tensors = static_cast<uint32_t>(error.code()),
                           .text_size = static_cast<uint32_t>(message.size())});
  return text + message;
}

std::string EncodeNothing() {
  std::string text;
  Append(text, ReplyRecord{.kind = static_cast<uint32_t>(ResponseKind::kNone), .is_last = 1});
  return text;
}

}  // namespace nereid::python
