// SPDX-License-Identifier: Apache-2.0
#include "http/generate_request.h"

#include <string>

#include "common/parameters.h"
#include "core/model.h"
#include "http/json_dom.h"
#include "http/json_tensor.h"

namespace nereid::http {
namespace {

using base::InternalError;
using base::InvalidArgumentError;
using tensor::DataType;

constexpr char kParametersKey[] = "parameters";

// Pours `count` elements into `dims`, from the innermost dimension outwards: fixed ones take what
// they need, the innermost wildcard takes the rest and the other wildcards are 1. False when they
// do not fit.
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
      : max_input_bytes_(max_input_bytes), request_(request), model_(*request.model) {}

  base::Status Read(const JsonValue& root);

 private:
  base::Status ReadMembers(const JsonValue& object, bool is_nested);
  base::Status ReadNested(const JsonValue& value);
  base::Status ReadParameter(std::string_view name, const JsonValue& value);
  base::Status ReadInput(const core::ModelTensor& input, const JsonValue& data);
  base::Status CheckSize(std::string_view name, uint64_t byte_size);
  base::Result<uint64_t> ByteSize(const core::ModelTensor& input, const JsonValue& data,
                                  size_t element_count) const;

  const size_t max_input_bytes_;
  core::Request& request_;
  const core::Model& model_;
  uint64_t input_bytes_ = 0;
};

base::Status GenerateReader::Read(const JsonValue& root) {
  if (const JsonValue* id = FindMember(root, "id")) {
    NEREID_ASSIGN_OR_RETURN(const std::string_view text, JsonText(*id, "Unable to parse 'id'"));
    request_.id = request_.arena().Copy(AsName(text));
  }
  return ReadMembers(root, false);
}

base::Status GenerateReader::ReadMembers(const JsonValue& object, bool is_nested) {
  if (!object.IsObject()) return InternalError("attempt to get members for non-object");
  if (object.MemberCount() > common::kMaxParameters) return common::TooManyParametersError();
  for (const auto& member : object.GetObject()) {
    const std::string_view name = AsName({member.name.GetString(), member.name.GetStringLength()});
    // Of two members of one name the first one counts, twice.
    const std::string name_text(name);
    const JsonValue* const value = FindMember(object, name_text.c_str());
    if (value == nullptr) {
      return InternalError("parameter key '" + name_text + "' was not found in the JSON");
    }
    if (!is_nested && name == kParametersKey) {
      NEREID_RETURN_IF_ERROR(ReadNested(*value));
    } else if (const int input = model_.FindInput(name); input >= 0) {
      NEREID_RETURN_IF_ERROR(ReadInput(model_.inputs()[static_cast<size_t>(input)], *value));
    } else {
      NEREID_RETURN_IF_ERROR(ReadParameter(name, *value));
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

base::Status GenerateReader::ReadParameter(std::string_view name, const JsonValue& value) {
  if (common::ClassifyParameter(name) == common::ParameterKey::kReserved) {
    return common::ReservedParameterError();
  }
  if (request_.parameters.size() >= common::kMaxParameters) {
    return common::TooManyParametersError();
  }
  return AppendParameter(name, value, request_);
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
  const bool is_given_already = request_.FindInput(input.name) != nullptr;
  core::RequestInput& added = request_.AddInput(input.name, input.type);
  added.shape = std::move(shape);
  if (byte_size > 0) {
    NEREID_RETURN_IF_ERROR(
        input.type == DataType::kBytes
            ? AppendTexts(data, byte_size, request_, added)
            : AppendNumbers(data, static_cast<int64_t>(element_count), request_, added));
  }
  if (!is_given_already) return base::OkStatus();
  return InvalidArgumentError(request_.LogPrefix() + "input '" + input.name +
                              "' already exists in request");
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
