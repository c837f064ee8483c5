// SPDX-License-Identifier: Apache-2.0
// The rules and texts about data are those of Triton's src/grpc/infer_handler.cc; the others are in
// common/infer_request_builder.cc.
#include "grpc/infer_request.h"

#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/arithmetic.h"
#include "common/infer_request_builder.h"
#include "common/request_regions.h"

namespace nereid::grpc {
namespace {

using base::InvalidArgumentError;
using base::Status;

// Smaller unaligned contents are copied to aligned memory.
constexpr size_t kAlignByCopyBelow = 4096;
constexpr size_t kWantedAlignment = 16;
std::optional<WireValue> Value(const WireParameter* parameter) {
  return parameter == nullptr ? std::nullopt : std::optional(parameter->value);
}

common::RegionParameters RegionParametersOf(const InferMessage& message, WireRange range) {
  return {.region = Value(message.FindTensorParameter(range, "shared_memory_region")),
          .offset = Value(message.FindTensorParameter(range, "shared_memory_offset")),
          .byte_size = Value(message.FindTensorParameter(range, "shared_memory_byte_size"))};
}

// Sets the data of `to` if it lies in shared memory; returns false otherwise.
base::Result<bool> AppendRegion(const InferMessage& message, const WireInput& input,
                                common::InferRequestBuilder& builder, core::RequestInput& to) {
  NEREID_ASSIGN_OR_RETURN(
      const auto region,
      builder.ReadRegion(input.name, RegionParametersOf(message, input.parameters)));
  if (!region) return false;
  if (input.has_contents) {
    return InvalidArgumentError(
        fmt::format("unexpected 'content' provided when using shared memory for input tensor "
                    "'{}' for model '{}'",
                    input.name, message.model_name));
  }
  NEREID_RETURN_IF_ERROR(builder.regions().AddInput(builder.request(), to, *region));
  return true;
}

// Returns the type that a contents field stands for in a tensor of `type`.
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

// Returns the one kind of contents that an input has; nothing if it has none.
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
                  common::InferRequestBuilder& builder, core::RequestInput& to) {
  core::Request& request = builder.request();
  if (input.parameters.count > 0) [[unlikely]] {
    NEREID_ASSIGN_OR_RETURN(const bool is_in_region, AppendRegion(message, input, builder, to));
    if (is_in_region) return base::OkStatus();
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

Status ReadOutputOptions(const InferMessage& message, const WireOutput& output,
                         common::InferRequestBuilder& builder, core::RequestedOutput& to) {
  const WireRange range = output.parameters;
  NEREID_ASSIGN_OR_RETURN(
      const common::OutputOptions options,
      builder.ReadOutputOptions(
          to, {.region = RegionParametersOf(message, range),
               .classification = Value(message.FindTensorParameter(range, "classification")),
               .binary_data = {}}));
  to.tag = options.is_in_region ? kInRegionTag : options.class_count;
  return base::OkStatus();
}

}  // namespace

base::Result<InferOptions> FillRequest(const InferMessage& message, core::Request& request,
                                       memory::RegionTable* table) {
  common::RequestRegions regions(table);
  common::InferRequestBuilder builder(common::Protocol::kGrpc, common::TextKind::kOfMessage,
                                      request, regions);
  builder.SetId(message.id);
  for (const WireParameter& parameter : message.parameters) {
    NEREID_RETURN_IF_ERROR(builder.SetParameter(parameter.name, parameter.value));
  }
  for (const WireInput& input : message.inputs) {
    NEREID_RETURN_IF_ERROR(
        builder.AddInput(input.name, common::ParseDataType(input.datatype), input.shape.dims())
            .status());
  }
  for (const WireOutput& output : message.outputs) {
    NEREID_RETURN_IF_ERROR(builder.AddOutput(output.name).status());
  }
  size_t next_raw = 0;
  for (size_t i = 0; i < message.inputs.size(); ++i) {
    NEREID_RETURN_IF_ERROR(
        AppendData(message, message.inputs[i], next_raw, builder, request.inputs[i]));
  }
  for (size_t i = 0; i < message.outputs.size(); ++i) {
    if (message.outputs[i].parameters.count == 0) [[likely]]
      continue;
    NEREID_RETURN_IF_ERROR(
        ReadOutputOptions(message, message.outputs[i], builder, request.outputs[i]));
  }
  regions.Attach(request);
  return InferOptions{.wants_empty_final_response = builder.wants_empty_final_response()};
}

}  // namespace nereid::grpc
