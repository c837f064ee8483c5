// SPDX-License-Identifier: Apache-2.0
// The rules and texts here are those of Triton's src/grpc/infer_handler.cc and grpc_utils.h.
#include "grpc/infer_request.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/arithmetic.h"
#include "common/parameters.h"
#include "common/request_regions.h"

namespace nereid::grpc {
namespace {

using base::InvalidArgumentError;
using base::Status;

// Below this, bytes that are not aligned are copied to where they are.
constexpr size_t kAlignByCopyBelow = 4096;
constexpr size_t kWantedAlignment = 16;
// Doubles among more inputs than this are found by the engine, as a count that no model has.
constexpr size_t kMaxSearchedInputs = 64;

Status WrongType(std::string_view name, std::string_view expected) {
  return InvalidArgumentError(
      fmt::format("invalid value type for '{}' parameter, expected {}.", name, expected));
}

Status SetSequenceId(const WireParameter& parameter, core::Request& request) {
  if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    request.correlation_id = static_cast<uint64_t>(*number);
  } else if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    NEREID_RETURN_IF_ERROR(common::CheckCorrelationId(*text));
    request.correlation_id = *text;
  } else {
    return WrongType(parameter.name, "int64_param or string_param");
  }
  return base::OkStatus();
}

Status SetFlag(const WireParameter& parameter, core::RequestFlag flag, core::Request& request) {
  const auto* on = std::get_if<bool>(&parameter.value);
  if (on == nullptr) return WrongType(parameter.name, "bool_param");
  if (*on) request.flags |= flag;
  return base::OkStatus();
}

Status SetPriority(const WireParameter& parameter, core::Request& request) {
  if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    if (*number < 0) {
      return InvalidArgumentError("invalid value for 'priority', expected value >= 0.");
    }
    request.priority = static_cast<uint64_t>(*number);
  } else if (const auto* unsigned_number = std::get_if<uint64_t>(&parameter.value)) {
    request.priority = *unsigned_number;
  } else {
    return WrongType(parameter.name, "int64_param or uint64_param");
  }
  return base::OkStatus();
}

Status SetTimeout(const WireParameter& parameter, core::Request& request) {
  const auto* number = std::get_if<int64_t>(&parameter.value);
  if (number == nullptr) return WrongType(parameter.name, "int64_param");
  request.timeout_us = static_cast<uint64_t>(*number);
  return base::OkStatus();
}

Status SetReserved(const WireParameter& parameter, InferOptions& options) {
  if (parameter.name != "triton_enable_empty_final_response") {
    return InvalidArgumentError(
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following "
        "keys starting with 'triton_' are allowed: triton_enable_empty_final_response");
  }
  const auto* on = std::get_if<bool>(&parameter.value);
  if (on == nullptr) return WrongType(parameter.name, "bool_param");
  options.wants_empty_final_response = *on;
  return base::OkStatus();
}

Status Forward(const WireParameter& parameter, core::Request& request) {
  core::Parameter forwarded{.name = parameter.name, .value = {}};
  if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    forwarded.value = *number;
  } else if (const auto* on = std::get_if<bool>(&parameter.value)) {
    forwarded.value = *on;
  } else if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    forwarded.value = *text;
  } else if (const auto* real = std::get_if<double>(&parameter.value)) {
    forwarded.value = *real;
  } else {
    return WrongType(parameter.name, "int64_param, bool_param, or string_param");
  }
  request.parameters.push_back(forwarded);
  return base::OkStatus();
}

Status SetParameter(const WireParameter& parameter, core::Request& request, InferOptions& options) {
  switch (common::ClassifyParameter(parameter.name)) {
    case common::ParameterKey::kSequenceId:
      return SetSequenceId(parameter, request);
    case common::ParameterKey::kSequenceStart:
      return SetFlag(parameter, core::kSequenceStart, request);
    case common::ParameterKey::kSequenceEnd:
      return SetFlag(parameter, core::kSequenceEnd, request);
    case common::ParameterKey::kPriority:
      return SetPriority(parameter, request);
    case common::ParameterKey::kTimeout:
      return SetTimeout(parameter, request);
    case common::ParameterKey::kReserved:
      return SetReserved(parameter, options);
    case common::ParameterKey::kHeaders:
    case common::ParameterKey::kBinaryDataOutput:
    case common::ParameterKey::kForwarded:
      break;
  }
  return Forward(parameter, request);
}

// Where a tensor lies in shared memory; nothing when its parameters name no region.
base::Result<std::optional<common::RegionTensor>> FindRegion(const InferMessage& message,
                                                             std::string_view tensor,
                                                             WireRange range) {
  const WireParameter* const region = message.FindTensorParameter(range, "shared_memory_region");
  const auto wrong = [tensor](std::string_view name, std::string_view expected) {
    return InvalidArgumentError(
        fmt::format("invalid value type for '{}' parameter for tensor '{}', expected {}.", name,
                    tensor, expected));
  };
  common::RegionTensor where;
  if (region != nullptr) {
    const auto* name = std::get_if<std::string_view>(&region->value);
    if (name == nullptr) return wrong("shared_memory_region", "string_param");
    where.region = *name;
  }
  bool has_size = false;
  for (const std::string_view name : {"shared_memory_offset", "shared_memory_byte_size"}) {
    const WireParameter* const parameter = message.FindTensorParameter(range, name);
    if (parameter == nullptr) continue;
    if (region == nullptr) {
      return InvalidArgumentError(
          fmt::format("'{}' can not be specified without 'shared_memory_region' parameter for "
                      "tensor '{}'",
                      name, tensor));
    }
    const auto* number = std::get_if<int64_t>(&parameter->value);
    if (number == nullptr) return wrong(name, "int64_param");
    // A negative number becomes one that is larger than any region.
    has_size = name == "shared_memory_byte_size";
    (has_size ? where.byte_size : where.offset) = static_cast<uint64_t>(*number);
  }
  if (region == nullptr) return std::optional<common::RegionTensor>();
  if (!has_size) {
    return InvalidArgumentError(
        fmt::format("'shared_memory_byte_size' must be specified along with "
                    "'shared_memory_region' parameter for tensor '{}'",
                    tensor));
  }
  return std::optional(where);
}

// The type a contents field stands for in a tensor of `type`.
tensor::DataType ContentsType(ContentsKind kind, tensor::DataType type) {
  using tensor::DataType;
  switch (kind) {
    case ContentsKind::kBool:
      return DataType::kBool;
    case ContentsKind::kInt:
      return type == DataType::kInt8 || type == DataType::kInt16 ? type : DataType::kInt32;
    case ContentsKind::kInt64:
      return DataType::kInt64;
    case ContentsKind::kUint:
      return type == DataType::kUint8 || type == DataType::kUint16 ? type : DataType::kUint32;
    case ContentsKind::kUint64:
      return DataType::kUint64;
    case ContentsKind::kFp32:
      return DataType::kFp32;
    case ContentsKind::kFp64:
      return DataType::kFp64;
    case ContentsKind::kBytes:
      return DataType::kBytes;
  }
  return DataType::kInvalid;
}

// Finds the one kind of contents an input carries; nothing for none.
base::Result<ContentsKind> OnlyKind(const InferMessage& message, const WireInput& input,
                                    tensor::DataType type) {
  auto found = static_cast<ContentsKind>(0);
  for (size_t field = 1; field < kContentsKinds; ++field) {
    if (input.element_counts[field] == 0) continue;
    const auto kind = static_cast<ContentsKind>(field);
    if (found != static_cast<ContentsKind>(0)) {
      return InvalidArgumentError(fmt::format(
          "unexpected explicit tensor data for input tensor '{}' for model '{}', binary data was "
          "already supplied.",
          input.name, message.model_name));
    }
    if (const tensor::DataType expected = ContentsType(kind, type); expected != type) {
      return InvalidArgumentError(fmt::format(
          "unexpected explicit tensor data for input tensor '{}' for model '{}' of type '{}', "
          "expected datatype '{}'",
          input.name, message.model_name, tensor::ProtocolName(expected),
          tensor::ProtocolName(type)));
    }
    found = kind;
  }
  return found;
}

Status AppendContents(const InferMessage& message, const WireInput& input, core::Request& request,
                      core::RequestInput& to) {
  NEREID_ASSIGN_OR_RETURN(const ContentsKind kind, OnlyKind(message, input, to.type));
  const auto field = static_cast<size_t>(kind);
  const size_t element_size = kind == ContentsKind::kBytes ? 4 : tensor::ElementSize(to.type);
  const auto elements = base::CheckedMul<size_t>(input.element_counts[field], element_size);
  const auto size = elements && kind == ContentsKind::kBytes
                        ? base::CheckedAdd<size_t>(*elements, input.bytes_contents_size)
                        : elements;
  std::byte* const place = size ? request.arena().Allocate(*size, base::kBufferAlignment) : nullptr;
  if (place == nullptr) {
    return base::UnavailableError(
        fmt::format("no memory for the data of input tensor '{}'", input.name));
  }
  std::byte* out = place;
  for (uint32_t i = 0; field != 0 && i < input.contents.count; ++i) {
    out = WriteContents(message.contents_bodies[input.contents.first + i], kind, element_size, out);
  }
  to.Append({.data = place, .size = static_cast<size_t>(out - place), .where = {}});
  return base::OkStatus();
}

Status AppendRaw(std::string_view raw, core::Request& request, core::RequestInput& to) {
  const auto* data = reinterpret_cast<const std::byte*>(raw.data());
  if (raw.size() < kAlignByCopyBelow && reinterpret_cast<uintptr_t>(data) % kWantedAlignment != 0) {
    std::byte* const place = request.arena().Allocate(raw.size(), base::kBufferAlignment);
    if (place != nullptr) {
      if (!raw.empty()) std::memcpy(place, raw.data(), raw.size());
      data = place;
    }
  }
  to.Append({.data = data, .size = raw.size(), .where = {}});
  return base::OkStatus();
}

Status AppendData(const InferMessage& message, const WireInput& input, size_t& next_raw,
                  core::Request& request, core::RequestInput& to, common::RequestRegions& regions) {
  NEREID_ASSIGN_OR_RETURN(const auto region, FindRegion(message, input.name, input.parameters));
  if (region) {
    if (input.has_contents) {
      return InvalidArgumentError(
          fmt::format("unexpected 'content' provided when using shared memory for input tensor "
                      "'{}' for model '{}'",
                      input.name, message.model_name));
    }
    return regions.AddInput(request, to, *region);
  }
  if (input.has_contents) {
    if (!message.raw_input_contents.empty()) {
      return InvalidArgumentError(
          fmt::format("contents field must not be specified when using raw_input_contents for "
                      "'{}' for model '{}'",
                      input.name, message.model_name));
    }
    return AppendContents(message, input, request, to);
  }
  if (next_raw < message.raw_input_contents.size()) {
    return AppendRaw(message.raw_input_contents[next_raw++], request, to);
  }
  return InvalidArgumentError(
      fmt::format("unable to find data for input tensor '{}' for model '{}' in request.",
                  input.name, message.model_name));
}

// The class count an output asks for, 0 for none.
base::Result<uint32_t> ClassCount(const InferMessage& message, const WireOutput& output) {
  const WireParameter* const parameter =
      message.FindTensorParameter(output.parameters, "classification");
  if (parameter == nullptr) return uint32_t{0};
  const auto* count = std::get_if<int64_t>(&parameter->value);
  if (count == nullptr) {
    return InvalidArgumentError(
        "invalid value type for 'classification' parameter, expected int64_param");
  }
  if (*count <= 0) {
    return InvalidArgumentError("invalid value for 'classification' parameter, expected >= 0");
  }
  return static_cast<uint32_t>(std::min<int64_t>(*count, kInRegionTag - 1));
}

Status AddOutputOptions(const InferMessage& message, const WireOutput& output,
                        core::RequestedOutput& to, common::RequestRegions& regions) {
  NEREID_ASSIGN_OR_RETURN(const auto region, FindRegion(message, output.name, output.parameters));
  NEREID_ASSIGN_OR_RETURN(to.tag, ClassCount(message, output));
  if (!region) return base::OkStatus();
  if (to.tag > 0) {
    return InvalidArgumentError(
        "output can't set both 'shared_memory_region' and 'classification'");
  }
  to.tag = kInRegionTag;
  return regions.AddOutput(to.name, *region);
}

}  // namespace

base::Result<InferOptions> FillRequest(const InferMessage& message, core::Request& request,
                                       memory::RegionTable* table) {
  InferOptions options;
  common::RequestRegions regions(table);
  // Not a view: answers carry it, and some leave after the message was given back.
  request.id = request.arena().Copy(message.id);
  for (const WireParameter& parameter : message.parameters) {
    NEREID_RETURN_IF_ERROR(SetParameter(parameter, request, options));
  }
  for (const WireInput& input : message.inputs) {
    if (request.inputs.size() < kMaxSearchedInputs && request.FindInput(input.name) != nullptr) {
      return InvalidArgumentError(
          fmt::format("{}input '{}' already exists in request", request.LogPrefix(), input.name));
    }
    const auto type = tensor::FromProtocolName(input.datatype);
    core::RequestInput& added =
        request.AddInput(input.name, type.value_or(tensor::DataType::kInvalid));
    added.shape.Assign(input.shape.dims());
  }
  for (const WireOutput& output : message.outputs) {
    // Not a view either: it is looked for when the answer is written.
    request.outputs.push_back({.name = request.arena().Copy(output.name)});
  }
  size_t next_raw = 0;
  for (size_t i = 0; i < message.inputs.size(); ++i) {
    NEREID_RETURN_IF_ERROR(
        AppendData(message, message.inputs[i], next_raw, request, request.inputs[i], regions));
  }
  for (size_t i = 0; i < message.outputs.size(); ++i) {
    NEREID_RETURN_IF_ERROR(
        AddOutputOptions(message, message.outputs[i], request.outputs[i], regions));
  }
  regions.Attach(request);
  return options;
}

}  // namespace nereid::grpc
