// SPDX-License-Identifier: Apache-2.0
// The exact reader of infer heads: Triton's order of checks, Triton's texts. The quick reader is
// for speed; this one uses bounded memory and never recurses deeper than kMaxDataDepth.
#include <optional>
#include <string>

#include "base/arithmetic.h"
#include "common/infer_request_builder.h"
#include "core/model.h"
#include "http/infer_request.h"
#include "http/json_dom.h"
#include "http/json_tensor.h"

namespace nereid::http {
namespace {

using base::InternalError;
using base::InvalidArgumentError;
using tensor::DataType;

class ExactReader {
 public:
  ExactReader(std::string_view binary, size_t max_input_bytes, core::Request& request,
              ResponseOptions& response_options)
      : binary_(binary),
        max_input_bytes_(max_input_bytes),
        builder_(common::Protocol::kHttp, common::TextKind::kOfReader, request,
                 response_options.regions),
        request_(request),
        response_options_(response_options) {}

  base::Status Read(const JsonValue& root);

 private:
  base::Status ReadParameters(const JsonValue& root);
  base::Status ReadInput(const JsonValue& object);
  base::Status ReadInputContent(const JsonValue& object, core::RequestInput& input);
  base::Status TakeBinary(uint64_t size, core::RequestInput& input);
  base::Status ReadData(const JsonValue& object, core::RequestInput& input);
  base::Status ReadBytes(const JsonValue& data, core::RequestInput& input);
  base::Status CheckByteSize(std::string_view name, uint64_t byte_size) const;
  base::Status ReadOutput(const JsonValue& object);

  std::string_view binary_;  // the part that no input has taken yet
  const size_t max_input_bytes_;
  common::InferRequestBuilder builder_;
  core::Request& request_;
  ResponseOptions& response_options_;
};

base::Status ExactReader::Read(const JsonValue& root) {
  if (const JsonValue* id = FindMember(root, "id")) {
    NEREID_ASSIGN_OR_RETURN(const std::string_view text, JsonText(*id, "Unable to parse 'id'"));
    builder_.SetId(text);
  }
  NEREID_RETURN_IF_ERROR(ReadParameters(root));
  NEREID_ASSIGN_OR_RETURN(const JsonValue* const inputs,
                          ArrayMember(root, "inputs", "Unable to parse 'inputs'"));
  for (const JsonValue& input : inputs->GetArray()) NEREID_RETURN_IF_ERROR(ReadInput(input));
  if (!binary_.empty()) {
    return InvalidArgumentError("unexpected additional input data for model '" +
                                request_.model->name() + "'");
  }
  if (FindMember(root, "outputs") == nullptr) return base::OkStatus();
  NEREID_ASSIGN_OR_RETURN(const JsonValue* const outputs,
                          ArrayMember(root, "outputs", "Unable to parse 'outputs'"));
  for (const JsonValue& output : outputs->GetArray()) NEREID_RETURN_IF_ERROR(ReadOutput(output));
  return base::OkStatus();
}

base::Status ExactReader::ReadParameters(const JsonValue& root) {
  const JsonValue* const parameters = FindMember(root, "parameters");
  if (parameters == nullptr) return base::OkStatus();
  if (!parameters->IsObject()) {
    return InternalError("failed to get request params.: attempt to get members for non-object");
  }
  for (const auto& member : parameters->GetObject()) {
    NEREID_ASSIGN_OR_RETURN(const NamedValue parameter, FirstOfName(*parameters, member.name));
    NEREID_RETURN_IF_ERROR(builder_.SetParameter(parameter.name, ToParameter(*parameter.value)));
  }
  response_options_.is_binary_by_default = builder_.is_binary_by_default();
  return base::OkStatus();
}

std::optional<common::ParameterValue> ParameterMember(const JsonValue& object, const char* name) {
  const JsonValue* const member = FindMember(object, name);
  return member == nullptr ? std::nullopt : std::optional(ToParameter(*member));
}

common::RegionParameters RegionParametersOf(const JsonValue& parameters) {
  return {.region = ParameterMember(parameters, "shared_memory_region"),
          .offset = ParameterMember(parameters, "shared_memory_offset"),
          .byte_size = ParameterMember(parameters, "shared_memory_byte_size")};
}

// Checks that exactly one of the three sources of data is given.
base::Status CheckOneContent(const JsonValue& input) {
  const JsonValue* const parameters = FindMember(input, "parameters");
  const bool has_data = FindMember(input, "data") != nullptr;
  const bool has_binary = parameters && FindMember(*parameters, "binary_data_size");
  const bool has_region = parameters && FindMember(*parameters, "shared_memory_region");
  if (has_data + has_binary + has_region == 1) return base::OkStatus();
  std::string text =
      "Input must set only one of the following fields: 'data', 'binary_data_size' in "
      "'parameters', 'shared_memory_region' in 'parameters'. But";
  if (!has_data && !has_binary && !has_region) {
    text += " no field is set";
  } else {
    text += " set";
    if (has_data) text += " 'data'";
    if (has_binary) text += " 'binary_data_size'";
    if (has_region) text += " 'shared_memory_region'";
  }
  return InvalidArgumentError(std::move(text));
}

base::Status ExactReader::ReadInput(const JsonValue& object) {
  NEREID_RETURN_IF_ERROR(CheckOneContent(object));
  NEREID_ASSIGN_OR_RETURN(const std::string_view name,
                          TextMember(object, "name", "Unable to parse 'name'"));
  NEREID_ASSIGN_OR_RETURN(const std::string_view type,
                          TextMember(object, "datatype", "Unable to parse 'datatype'"));
  NEREID_ASSIGN_OR_RETURN(const JsonValue* const dims,
                          ArrayMember(object, "shape", "Unable to parse 'shape'"));
  tensor::Shape shape;
  for (const JsonValue& element : dims->GetArray()) {
    NEREID_ASSIGN_OR_RETURN(const uint64_t dim, JsonUnsigned(element, "Unable to parse 'shape'"));
    shape.PushBack(static_cast<int64_t>(dim));
  }
  NEREID_ASSIGN_OR_RETURN(core::RequestInput* const input,
                          builder_.AddInput(name, common::ParseDataType(type), shape.dims()));
  return ReadInputContent(object, *input);
}

base::Status ExactReader::ReadInputContent(const JsonValue& object, core::RequestInput& input) {
  if (const JsonValue* parameters = FindMember(object, "parameters")) {
    if (const JsonValue* size = FindMember(*parameters, "binary_data_size")) {
      NEREID_ASSIGN_OR_RETURN(const uint64_t bytes,
                              JsonUnsigned(*size, "Unable to parse 'binary_data_size'"));
      return TakeBinary(bytes, input);
    }
    NEREID_ASSIGN_OR_RETURN(const auto region,
                            builder_.ReadRegion(input.name, RegionParametersOf(*parameters)));
    if (region) return response_options_.regions.AddInput(request_, input, *region);
  }
  return ReadData(object, input);
}

base::Status ExactReader::TakeBinary(uint64_t size, core::RequestInput& input) {
  if (size > binary_.size()) {
    return InvalidArgumentError("unexpected size for input '" + std::string(input.name) +
                                "', expecting " + std::to_string(size - binary_.size()) +
                                " additional bytes for model '" + request_.model->name() + "'");
  }
  if (size > 0) {
    input.Append(
        {reinterpret_cast<const std::byte*>(binary_.data()), static_cast<size_t>(size), {}});
  }
  binary_.remove_prefix(static_cast<size_t>(size));
  return base::OkStatus();
}

// Faults of a shape, in the order in which the dimensions are checked.
enum class ShapeFault { kNone, kWildcard, kInvalid, kOverflow };
struct ElementTally {
  int64_t count = 1;
  ShapeFault fault = ShapeFault::kNone;
};

ElementTally Tally(std::span<const int64_t> dims) {
  ElementTally tally;
  for (const int64_t dim : dims) {
    if (dim == tensor::kWildcard) return {-1, ShapeFault::kWildcard};
    if (dim < 0) return {-1, ShapeFault::kInvalid};
    if (dim == 0) return {0, ShapeFault::kNone};
    const auto product = base::CheckedMul(tally.count, dim);
    if (!product) return {-1, ShapeFault::kOverflow};
    tally.count = *product;
  }
  return tally;
}

base::Status ExactReader::CheckByteSize(std::string_view name, uint64_t byte_size) const {
  if (byte_size <= max_input_bytes_) return base::OkStatus();
  return InvalidArgumentError(
      "JSON input '" + std::string(name) + "' has a byte_size (" + std::to_string(byte_size) +
      " bytes) that exceeds the maximum allowed value of " + std::to_string(max_input_bytes_) +
      " bytes. Use --http-max-input-size to increase the limit.");
}

base::Status ExactReader::ReadData(const JsonValue& object, core::RequestInput& input) {
  const ElementTally tally = Tally(input.shape.dims());
  if (tally.count == 0) return base::OkStatus();  // `data` is ignored
  const std::string shape_text = "invalid shape for input '" + std::string(input.name) +
                                 "': shape " + tensor::ToString(input.shape);
  if (tally.fault == ShapeFault::kInvalid) {
    return InvalidArgumentError(shape_text + " contains one or more invalid dimensions");
  }
  if (tally.fault == ShapeFault::kOverflow) {
    return InvalidArgumentError(shape_text +
                                " causes total element count to exceed maximum size of " +
                                std::to_string(INT64_MAX));
  }
  NEREID_ASSIGN_OR_RETURN(const JsonValue* const data,
                          ArrayMember(object, "data", "Unable to parse 'data'"));
  if (input.type == DataType::kBytes) return ReadBytes(*data, input);
  const size_t element_size = tensor::ElementSize(input.type);
  if (element_size > 1 && tally.count > INT64_MAX / static_cast<int64_t>(element_size)) {
    return InvalidArgumentError(
        "byte size overflow for input '" + std::string(input.name) + "': element count (" +
        std::to_string(tally.count) + ") * data type size (" + std::to_string(element_size) +
        ") exceeds maximum allowed size (" + std::to_string(INT64_MAX) + ")");
  }
  // A wildcard counts as -1 here, which exceeds any limit as an unsigned number.
  NEREID_RETURN_IF_ERROR(
      CheckByteSize(input.name, static_cast<uint64_t>(tally.count) * element_size));
  switch (input.type) {
    case DataType::kFp16:
    case DataType::kBf16:
      return InvalidArgumentError("receiving " + std::string(tensor::ProtocolName(input.type)) +
                                  " data via JSON is not supported. Please use the binary data "
                                  "format for input " +
                                  std::string(input.name));
    case DataType::kInvalid:
      return InvalidArgumentError("invalid datatype for input " + std::string(input.name));
    default:
      break;
  }
  NEREID_ASSIGN_OR_RETURN(
      const core::DataChunk chunk,
      ReadNumbers(*data, tally.count, {input.name, input.type}, request_.arena()));
  input.Append(chunk);
  return base::OkStatus();
}

base::Status ExactReader::ReadBytes(const JsonValue& data, core::RequestInput& input) {
  NEREID_ASSIGN_OR_RETURN(const uint64_t byte_size, SerializedTextSize(data));
  NEREID_RETURN_IF_ERROR(CheckByteSize(input.name, byte_size));
  NEREID_ASSIGN_OR_RETURN(const core::DataChunk chunk,
                          ReadTexts(data, byte_size, request_.arena()));
  input.Append(chunk);
  return base::OkStatus();
}

base::Status ExactReader::ReadOutput(const JsonValue& object) {
  common::OutputParameters parameters;
  if (const JsonValue* members = FindMember(object, "parameters")) {
    parameters = {.region = RegionParametersOf(*members),
                  .classification = ParameterMember(*members, "classification"),
                  .binary_data = ParameterMember(*members, "binary_data")};
  }
  NEREID_RETURN_IF_ERROR(builder_.CheckOutputParameters(parameters));
  NEREID_ASSIGN_OR_RETURN(const std::string_view name,
                          TextMember(object, "name", "Unable to parse 'name'"));
  return infer_internal::AddOutput(builder_, name, parameters, response_options_);
}

}  // namespace

namespace infer_internal {

base::Status ReadExactly(std::string_view json, std::string_view binary, size_t max_input_bytes,
                         core::Request& request, ResponseOptions& response_options) {
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ParseJson(json, document));
  return ExactReader(binary, max_input_bytes, request, response_options).Read(document);
}

}  // namespace infer_internal
}  // namespace nereid::http
