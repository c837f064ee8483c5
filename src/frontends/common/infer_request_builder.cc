// SPDX-License-Identifier: Apache-2.0
// The rules and texts of gRPC are those of Triton's src/grpc/infer_handler.cc and grpc_utils.h,
// those of HTTP of its src/http_server.cc and its JSON layer.
#include "common/infer_request_builder.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace nereid::common {
namespace {

using base::InvalidArgumentError;
using base::Status;

// A name is searched for among so many tensors at most. Only the place of the error depends on
// this: the engine finds every duplicate, in linear time.
constexpr size_t kMaxSearchedTensors = 64;

// Returns the bit of a key in InferRequestBuilder::known_parameters_.
uint32_t BitOf(ParameterKey key) { return 1u << static_cast<unsigned>(key); }

// Returns the value if it is a non-negative JSON integer.
std::optional<uint64_t> Unsigned(const ParameterValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value); number != nullptr && *number >= 0) {
    return static_cast<uint64_t>(*number);
  }
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number;
  return std::nullopt;
}

}  // namespace

std::string_view CutAtZero(std::string_view text) { return text.substr(0, text.find('\0')); }

tensor::DataType ParseDataType(std::string_view name) {
  if (const auto type = tensor::FromProtocolName(name)) [[likely]]
    return *type;
  return tensor::FromProtocolName(CutAtZero(name)).value_or(tensor::DataType::kInvalid);
}

Status InferRequestBuilder::WrongType(std::string_view name, std::string_view json,
                                      std::string_view grpc, std::string_view tensor) const {
  if (protocol_ == Protocol::kHttp) return WrongJsonType("Unable to parse", name, json);
  return InvalidArgumentError(
      fmt::format("invalid value type for '{}' parameter{}, expected {}.", name,
                  tensor.empty() ? "" : fmt::format(" for tensor '{}'", tensor), grpc));
}

Status InferRequestBuilder::WrongJsonType(std::string_view context, std::string_view name,
                                          std::string_view json) {
  return base::InternalError(
      fmt::format("{} '{}': attempt to access JSON non-{} as {}", context, name, json, json));
}

Status InferRequestBuilder::AlreadyExists(std::string_view kind, std::string_view name) const {
  return InvalidArgumentError(
      fmt::format("{}{} '{}' already exists in request", request_.LogPrefix(), kind, name));
}

Status InferRequestBuilder::SetSequenceId(const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    NEREID_RETURN_IF_ERROR(CheckCorrelationId(*text));
    request_.correlation_id = request_.arena().Copy(Cut(*text));
    return base::OkStatus();
  }
  if (protocol_ == Protocol::kGrpc) {
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr) return WrongType("sequence_id", "", "int64_param or string_param");
    request_.correlation_id = static_cast<uint64_t>(*number);
    return base::OkStatus();
  }
  const auto number = Unsigned(value);
  if (!number) return WrongType("sequence_id", "string", "");
  request_.correlation_id = *number;
  return base::OkStatus();
}

Status InferRequestBuilder::SetSequenceFlag(std::string_view name, core::RequestFlag flag,
                                            const ParameterValue& value) {
  const auto* on = std::get_if<bool>(&value);
  if (on == nullptr) return WrongType(name, "boolean", "bool_param");
  if (*on) request_.flags |= flag;
  return base::OkStatus();
}

Status InferRequestBuilder::SetPriority(const ParameterValue& value) {
  if (const auto number = Unsigned(value)) {
    request_.priority = *number;
    return base::OkStatus();
  }
  if (protocol_ == Protocol::kGrpc && std::holds_alternative<int64_t>(value)) {
    return InvalidArgumentError("invalid value for 'priority', expected value >= 0.");
  }
  return WrongType("priority", "unsigned-integer", "int64_param or uint64_param");
}

Status InferRequestBuilder::SetTimeout(const ParameterValue& value) {
  if (protocol_ == Protocol::kGrpc) {
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr) return WrongType("timeout", "", "int64_param");
    request_.timeout_us = static_cast<uint64_t>(*number);
    return base::OkStatus();
  }
  const auto number = Unsigned(value);
  if (!number) return WrongType("timeout", "unsigned-integer", "");
  request_.timeout_us = *number;
  return base::OkStatus();
}

Status InferRequestBuilder::SetReserved(std::string_view name, const ParameterValue& value) {
  if (protocol_ == Protocol::kHttp) return ReservedParameterError();
  if (name != "triton_enable_empty_final_response") {
    return InvalidArgumentError(
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following "
        "keys starting with 'triton_' are allowed: triton_enable_empty_final_response");
  }
  const auto* on = std::get_if<bool>(&value);
  if (on == nullptr) return WrongType(name, "boolean", "bool_param");
  wants_empty_final_response_ = *on;
  return base::OkStatus();
}

Status InferRequestBuilder::SetParameter(ParameterKey key, std::string_view name,
                                         const ParameterValue& value) {
  if (++parameter_count_ > kMaxParameters) return TooManyParametersError();
  if (key != ParameterKey::kForwarded) {
    repeats_parameter_ |= (known_parameters_ & BitOf(key)) != 0;
    known_parameters_ |= BitOf(key);
  }
  switch (key) {
    case ParameterKey::kSequenceId:
      return SetSequenceId(value);
    case ParameterKey::kSequenceStart:
      return SetSequenceFlag(name, core::kSequenceStart, value);
    case ParameterKey::kSequenceEnd:
      return SetSequenceFlag(name, core::kSequenceEnd, value);
    case ParameterKey::kPriority:
      return SetPriority(value);
    case ParameterKey::kTimeout:
      return SetTimeout(value);
    case ParameterKey::kReserved:
      return SetReserved(name, value);
    case ParameterKey::kBinaryDataOutput: {
      if (protocol_ != Protocol::kHttp) break;
      const auto* on = std::get_if<bool>(&value);
      if (on == nullptr) return WrongType(name, "boolean", "");
      is_binary_by_default_ = *on;
      return base::OkStatus();
    }
    case ParameterKey::kHeaders:
    case ParameterKey::kForwarded:
      break;
  }
  return AppendParameter(name, value);
}

Status InferRequestBuilder::ForwardParameter(std::string_view name, const ParameterValue& value) {
  name = Cut(name);
  if (ClassifyParameter(name) == ParameterKey::kReserved) return ReservedParameterError();
  if (++parameter_count_ > kMaxParameters) return TooManyParametersError();
  return AppendParameter(name, value);
}

Status InferRequestBuilder::AppendParameter(std::string_view name, const ParameterValue& value) {
  core::Parameter parameter{.name = Kept(name), .value = {}};
  const auto* const large = std::get_if<uint64_t>(&value);
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    parameter.value = Kept(Cut(*text));
  } else if (const auto* number = std::get_if<int64_t>(&value)) {
    parameter.value = *number;
  } else if (const auto* on = std::get_if<bool>(&value)) {
    parameter.value = *on;
  } else if (const auto* real = std::get_if<double>(&value)) {
    parameter.value = *real;
  } else if (large != nullptr && protocol_ == Protocol::kHttp) {
    // The C API has no unsigned parameters.
    parameter.value = static_cast<double>(*large);
  } else if (protocol_ == Protocol::kHttp) {
    return InvalidArgumentError(
        fmt::format("parameter '{}' has invalid type. It should be either 'int', 'bool', or "
                    "'string'.",
                    name));
  } else {
    return WrongType(name, "", "int64_param, bool_param, or string_param");
  }
  request_.parameters.push_back(parameter);
  ++forwarded_count_;
  return base::OkStatus();
}

bool InferRequestBuilder::RepeatsForwardedParameter() const {
  const std::vector<core::Parameter>& parameters = request_.parameters;
  for (size_t i = 1; i < parameters.size(); ++i) {
    const auto end = parameters.begin() + static_cast<ptrdiff_t>(i);
    if (std::find_if(parameters.begin(), end, [&](const core::Parameter& earlier) {
          return earlier.name == end->name;
        }) != end) {
      return true;
    }
  }
  return false;
}

core::RequestInput* InferRequestBuilder::TryAddInput(std::string_view name, tensor::DataType type,
                                                     std::span<const int64_t> dims) {
  name = Cut(name);
  const size_t count = request_.inputs.size();
  if (count > 0 && count < kMaxSearchedTensors && request_.FindInput(name) != nullptr) {
    return nullptr;
  }
  core::RequestInput& input = request_.AddInput(Kept(name), type);
  input.shape.Assign(dims);
  return &input;
}

base::Result<core::RequestInput*> InferRequestBuilder::AddInput(std::string_view name,
                                                                tensor::DataType type,
                                                                std::span<const int64_t> dims) {
  if (core::RequestInput* const input = TryAddInput(name, type, dims)) return input;
  return AlreadyExists("input", Cut(name));
}

base::Result<std::optional<RegionTensor>> InferRequestBuilder::ReadRegion(
    std::string_view name, const RegionParameters& parameters) const {
  RegionTensor where;
  if (parameters.region) {
    const auto* region = std::get_if<std::string_view>(&*parameters.region);
    if (region == nullptr) return WrongType("shared_memory_region", "string", "string_param", name);
    where.region = Cut(*region);
  }
  const auto read = [&](std::string_view key, const std::optional<ParameterValue>& value,
                        uint64_t& number) -> Status {
    if (!value) return base::OkStatus();
    if (protocol_ == Protocol::kHttp) {
      const auto unsigned_number = Unsigned(*value);
      if (!unsigned_number) return WrongType(key, "unsigned-integer", "");
      number = *unsigned_number;
      return base::OkStatus();
    }
    if (!parameters.region) {
      return InvalidArgumentError(
          fmt::format("'{}' can not be specified without 'shared_memory_region' parameter for "
                      "tensor '{}'",
                      key, name));
    }
    const auto* signed_number = std::get_if<int64_t>(&*value);
    if (signed_number == nullptr) return WrongType(key, "", "int64_param", name);
    // A negative number becomes one that is larger than any region.
    number = static_cast<uint64_t>(*signed_number);
    return base::OkStatus();
  };
  NEREID_RETURN_IF_ERROR(read("shared_memory_offset", parameters.offset, where.offset));
  NEREID_RETURN_IF_ERROR(read("shared_memory_byte_size", parameters.byte_size, where.byte_size));
  if (!parameters.region) return std::optional<RegionTensor>();
  if (protocol_ == Protocol::kGrpc && !parameters.byte_size) {
    return InvalidArgumentError(
        fmt::format("'shared_memory_byte_size' must be specified along with "
                    "'shared_memory_region' parameter for tensor '{}'",
                    name));
  }
  return std::optional(where);
}

Status InferRequestBuilder::CheckOutputParameters(const OutputParameters& parameters) const {
  if (!parameters.region.region) return base::OkStatus();
  const std::string_view subject = protocol_ == Protocol::kHttp ? "Output" : "output";
  if (parameters.classification) {
    return InvalidArgumentError(
        fmt::format("{} can't set both 'shared_memory_region' and 'classification'", subject));
  }
  if (!parameters.binary_data) return base::OkStatus();
  const auto* is_binary = std::get_if<bool>(&*parameters.binary_data);
  if (is_binary == nullptr) return WrongJsonType("Unable to set", "binary_data", "boolean");
  if (!*is_binary) return base::OkStatus();
  return InvalidArgumentError(
      fmt::format("{} can't set both 'shared_memory_region' and 'binary_data'", subject));
}

base::Result<core::RequestedOutput*> InferRequestBuilder::AddOutput(std::string_view name) {
  name = Cut(name);
  if (request_.outputs.size() < kMaxSearchedTensors &&
      std::ranges::find(request_.outputs, name, &core::RequestedOutput::name) !=
          request_.outputs.end()) {
    return AlreadyExists("output", name);
  }
  core::RequestedOutput& output = request_.outputs.emplace_back();
  // Copied even if the text outlives the request, because the response reads it again.
  output.name = request_.arena().Copy(name);
  return &output;
}

base::Result<uint32_t> InferRequestBuilder::ReadClassCount(const ParameterValue& value) const {
  // Clients may request any number of classes, because no tensor has more elements than this.
  constexpr uint64_t kMaxClasses = UINT32_MAX - 1;
  if (protocol_ == Protocol::kHttp) {
    const auto count = Unsigned(value);
    if (!count) return WrongJsonType("Unable to set", "classification", "unsigned-integer");
    return static_cast<uint32_t>(std::min(*count, kMaxClasses));
  }
  const auto* count = std::get_if<int64_t>(&value);
  if (count == nullptr) {
    return InvalidArgumentError(
        "invalid value type for 'classification' parameter, expected int64_param");
  }
  if (*count <= 0) {
    return InvalidArgumentError("invalid value for 'classification' parameter, expected >= 0");
  }
  return static_cast<uint32_t>(std::min(static_cast<uint64_t>(*count), kMaxClasses));
}

base::Result<OutputOptions> InferRequestBuilder::ReadOutputOptions(
    const core::RequestedOutput& output, const OutputParameters& parameters) {
  OutputOptions options;
  NEREID_ASSIGN_OR_RETURN(const auto region, ReadRegion(output.name, parameters.region));
  if (parameters.classification) {
    NEREID_ASSIGN_OR_RETURN(options.class_count, ReadClassCount(*parameters.classification));
  }
  NEREID_RETURN_IF_ERROR(CheckOutputParameters(parameters));
  if (region) {
    NEREID_RETURN_IF_ERROR(regions_.AddOutput(output.name, *region));
    options.is_in_region = true;
  } else if (parameters.binary_data) {
    const auto* is_binary = std::get_if<bool>(&*parameters.binary_data);
    if (is_binary == nullptr) return WrongType("binary_data", "boolean", "");
    options.is_binary = *is_binary;
  }
  return options;
}

}  // namespace nereid::common
