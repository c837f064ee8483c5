// SPDX-License-Identifier: Apache-2.0
#include "http/generate_request.h"

#include <string>

#include "common/infer_request_builder.h"
#include "common/request_regions.h"
#include "core/model.h"
#include "http/json_dom.h"
#include "http/json_tensor.h"

namespace nereid::http {
namespace {

using base::InternalError;
using base::InvalidArgumentError;
using tensor::DataType;

constexpr char kParametersKey[] = "parameters";

// Distributes `count` elements over `dims`, from the innermost dimension outwards: fixed dimensions
// keep their size, the innermost wildcard gets the rest and the other wildcards are 1. Returns
// false if they do not fit.
bool PourElements(size_t count, tensor::Shape& dims) {
  for (size_t i = dims.rank(); i-- > 0;) {
    if (dims[i] == tensor::kWildcard) continue;
    const auto dim = static_cast<size_t>(dims[i]);
    if (dims[i] <= 0 || count % dim != 0) return false;
    count /= dim;
  }
  for (size_t i = dims.rank(); i-- > 0;) {
    if (dims[i] != tensor::kWildcard) continue;
    dims[i] = static_cast<int64_t>(count);
    count = 1;
  }
  return count == 1;
}

class GenerateReader {
 public:
  GenerateReader(size_t max_input_bytes, core::Request& request)
      : max_input_bytes_(max_input_bytes),
        builder_(common::Protocol::kHttp, common::TextKind::kOfReader, request, no_regions_),
        request_(request),
        model_(*request.model) {}

  base::Status Read(const JsonValue& root);

 private:
  base::Status ReadMembers(const JsonValue& object, bool is_nested);
  base::Status ReadNested(const JsonValue& value);
  base::Status ReadInput(const core::ModelTensor& input, const JsonValue& data);
  base::Status CheckSize(std::string_view name, uint64_t byte_size);
  base::Result<uint64_t> ByteSize(const core::ModelTensor& input, const JsonValue& data,
                                  size_t element_count) const;

  base::Result<core::DataChunk> ReadData(const core::ModelTensor& input, const JsonValue& data,
                                         uint64_t byte_size, size_t element_count);

  const size_t max_input_bytes_;
  common::RequestRegions no_regions_;  // this protocol has no shared memory
  common::InferRequestBuilder builder_;
  core::Request& request_;
  const core::Model& model_;
  uint64_t input_bytes_ = 0;
};

base::Status GenerateReader::Read(const JsonValue& root) {
  if (const JsonValue* id = FindMember(root, "id")) {
    NEREID_ASSIGN_OR_RETURN(const std::string_view text, JsonText(*id, "Unable to parse 'id'"));
    builder_.SetId(text);
  }
  return ReadMembers(root, false);
}

base::Status GenerateReader::ReadMembers(const JsonValue& object, bool is_nested) {
  if (!object.IsObject()) return InternalError("attempt to get members for non-object");
  for (const auto& member : object.GetObject()) {
    NEREID_ASSIGN_OR_RETURN(const NamedValue named, FirstOfName(object, member.name));
    const auto& [name, value] = named;
    if (!is_nested && name == kParametersKey) {
      NEREID_RETURN_IF_ERROR(ReadNested(*value));
    } else if (const int input = model_.FindInput(name); input >= 0) {
      NEREID_RETURN_IF_ERROR(ReadInput(model_.inputs()[static_cast<size_t>(input)], *value));
    } else {
      NEREID_RETURN_IF_ERROR(builder_.ForwardParameter(name, ToParameter(*value)));
    }
  }
  return base::OkStatus();
}

base::Status GenerateReader::ReadNested(const JsonValue& value) {
  const std::string key = kParametersKey;
  if (model_.FindInput(key) >= 0) {
    return InvalidArgumentError("Keyword '" + key +
                                "' for nested schema also given as input tensor name");
  }
  if (!value.IsObject()) {
    return InternalError("Expected JSON object for keyword: '" + key +
                         "': attempt to access JSON non-object as object");
  }
  return ReadMembers(value, true).WithPrefix("Converting keyword: '" + key + "': ");
}

base::Result<uint64_t> GenerateReader::ByteSize(const core::ModelTensor& input,
                                                const JsonValue& data, size_t element_count) const {
  if (input.type == DataType::kBytes) return SerializedTextSize(data);
  const size_t element_size = tensor::ElementSize(input.type);
  if (element_size == 0) {
    return InvalidArgumentError("input '" + input.name + "' has unsupported datatype " +
                                std::string(tensor::ProtocolName(input.type)));
  }
  // There are fewer elements than bytes of JSON, so this cannot overflow.
  return uint64_t{element_count} * element_size;
}

base::Status GenerateReader::CheckSize(std::string_view name, uint64_t byte_size) {
  if (byte_size <= max_input_bytes_ - input_bytes_) {
    input_bytes_ += byte_size;
    return base::OkStatus();
  }
  return InvalidArgumentError(
      "request size of " + std::to_string(input_bytes_) + " bytes with input '" +
      std::string(name) + "' of size " + std::to_string(byte_size) +
      " bytes exceeds the maximum allowed input size of " + std::to_string(max_input_bytes_) +
      ". Use --http-max-input-size to increase the limit.");
}

base::Status GenerateReader::ReadInput(const core::ModelTensor& input, const JsonValue& data) {
  const size_t element_count = data.IsArray() ? data.Size() : 1;
  NEREID_ASSIGN_OR_RETURN(const uint64_t byte_size, ByteSize(input, data, element_count));
  NEREID_RETURN_IF_ERROR(CheckSize(input.name, byte_size));
  tensor::Shape shape;
  if (model_.max_batch_size() > 0) shape.PushBack(tensor::kWildcard);
  for (const int64_t dim : input.dims.dims()) shape.PushBack(dim);
  if (!PourElements(element_count, shape)) {
    return InvalidArgumentError("The schema can not convert input '" + input.name +
                                "' to tensor with proper shape");
  }
  if (input.type == DataType::kFp16 || input.type == DataType::kBf16) {
    return InvalidArgumentError("receiving " + std::string(tensor::ProtocolName(input.type)) +
                                " data via JSON is not supported. Please use the binary data "
                                "format for input " +
                                input.name);
  }
  NEREID_ASSIGN_OR_RETURN(const core::DataChunk chunk,
                          ReadData(input, data, byte_size, element_count));
  NEREID_ASSIGN_OR_RETURN(core::RequestInput* const added,
                          builder_.AddInput(input.name, input.type, shape.dims()));
  if (chunk.size > 0) added->Append(chunk);
  return base::OkStatus();
}

base::Result<core::DataChunk> GenerateReader::ReadData(const core::ModelTensor& input,
                                                       const JsonValue& data, uint64_t byte_size,
                                                       size_t element_count) {
  if (byte_size == 0) return core::DataChunk{};
  if (input.type == DataType::kBytes) return ReadTexts(data, byte_size, request_.arena());
  return ReadNumbers(data, static_cast<int64_t>(element_count), {input.name, input.type},
                     request_.arena());
}

}  // namespace

base::Status ReadGenerateRequest(std::string_view json, size_t max_input_bytes,
                                 core::Request& request) {
  if (json.size() > max_input_bytes) {
    return InvalidArgumentError("request JSON size of " + std::to_string(json.size()) +
                                " bytes exceeds the maximum allowed input size of " +
                                std::to_string(max_input_bytes) +
                                " bytes. Use --http-max-input-size to increase the limit.");
  }
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ParseJson(json, document));
  return GenerateReader(max_input_bytes, request).Read(document);
}

}  // namespace nereid::http
