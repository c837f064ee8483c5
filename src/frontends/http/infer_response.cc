// SPDX-License-Identifier: Apache-2.0
#include "http/infer_response.h"

#include <algorithm>
#include <cstring>

#include "base/json_text.h"
#include "common/classification.h"
#include "common/json_text.h"
#include "core/model.h"

namespace nereid::http {
namespace {

using common::AppendJsonBool;
using common::AppendJsonDouble;
using common::AppendJsonInteger;
using common::AppendJsonString;
using tensor::DataType;

constexpr size_t kKeptBytes = size_t{64} << 10;

OutputOptions OptionsOf(const core::ResponseOutput& output, const core::Request& request,
                        const ResponseOptions& options) {
  for (const core::RequestedOutput& requested : request.outputs) {
    if (requested.name == output.name) return options.outputs[requested.tag];
  }
  return {.is_binary = options.is_binary_by_default};
}

base::Status SizeError(std::string_view prefix, const core::ResponseOutput& output) {
  return base::InternalError(std::string(prefix) +
                             "output tensor shape does not match size of output for '" +
                             std::string(output.name) + "'");
}

// Prints `count` elements of T with `print(text, element)`, which appends a comma to each.
template <typename T, typename Print>
base::Status WriteElements(std::string& json, const core::ResponseOutput& output, uint64_t count,
                           const Print& print) {
  if (output.byte_size / sizeof(T) != count || output.byte_size % sizeof(T) != 0) {
    return SizeError("Failed to write 'data' field: ", output);
  }
  for (uint64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, output.data + i * sizeof(T), sizeof(T));
    print(json, element);
  }
  return base::OkStatus();
}

template <typename T>
base::Status WriteIntegers(std::string& json, const core::ResponseOutput& output, uint64_t count) {
  return WriteElements<T>(json, output, count, [](std::string& text, T value) {
    AppendJsonInteger(text, value);
    text += ',';
  });
}

template <typename T>
base::Status WriteFloats(std::string& json, const core::ResponseOutput& output, uint64_t count) {
  // Printed in blocks, because growing the text costs as much as printing a number.
  char block[2048];
  char* end = block;
  NEREID_RETURN_IF_ERROR(WriteElements<T>(json, output, count, [&](std::string& text, T value) {
    if (end + base::kMaxJsonDouble + 1 > block + sizeof(block)) {
      text.append(block, end);
      end = block;
    }
    end = base::WriteJsonDouble(static_cast<double>(value), end);
    *end++ = ',';
  }));
  json.append(block, end);
  return base::OkStatus();
}

base::Status WriteStrings(std::string& json, const core::ResponseOutput& output, uint64_t count) {
  const char* at = reinterpret_cast<const char*>(output.data);
  size_t left = output.byte_size;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    if (left < sizeof(length)) return SizeError("", output);
    std::memcpy(&length, at, sizeof(length));
    at += sizeof(length);
    left -= sizeof(length);
    if (left < length) return SizeError("", output);
    AppendJsonString(json, {at, length});
    json += ',';
    at += length;
    left -= length;
  }
  return base::OkStatus();
}

base::Status WriteData(std::string& json, const core::ResponseOutput& output, uint64_t count) {
  switch (output.type) {
    case DataType::kBool:
      return WriteElements<uint8_t>(json, output, count, [](std::string& text, uint8_t value) {
        AppendJsonBool(text, value != 0);
        text += ',';
      });
    case DataType::kUint8:
      return WriteIntegers<uint8_t>(json, output, count);
    case DataType::kUint16:
      return WriteIntegers<uint16_t>(json, output, count);
    case DataType::kUint32:
      return WriteIntegers<uint32_t>(json, output, count);
    case DataType::kUint64:
      return WriteIntegers<uint64_t>(json, output, count);
    case DataType::kInt8:
      return WriteIntegers<int8_t>(json, output, count);
    case DataType::kInt16:
      return WriteIntegers<int16_t>(json, output, count);
    case DataType::kInt32:
      return WriteIntegers<int32_t>(json, output, count);
    case DataType::kInt64:
      return WriteIntegers<int64_t>(json, output, count);
    case DataType::kFp32:
      return WriteFloats<float>(json, output, count);
    case DataType::kFp64:
      return WriteFloats<double>(json, output, count);
    case DataType::kBytes:
      return WriteStrings(json, output, count);
    case DataType::kFp16:
    case DataType::kBf16:
      return base::InvalidArgumentError(
          "sending " + std::string(tensor::ProtocolName(output.type)) +
          " data via JSON is not supported. Please use the binary data format for output");
    case DataType::kInvalid:
      break;
  }
  return base::InvalidArgumentError("Invalid data type for output tensor");
}

// Turns the comma after the last element into `close`, or appends `close` if there was no element.
void CloseList(std::string& json, char close) {
  if (json.back() == ',') {
    json.back() = close;
  } else {
    json += close;
  }
}

void WriteShape(std::string& json, std::span<const int64_t> dims) {
  json += ",\"shape\":[";
  for (const int64_t dim : dims) {
    // Triton prints dimensions as unsigned numbers; data never has a negative one.
    AppendJsonInteger(json, static_cast<uint64_t>(dim));
    json += ',';
  }
  CloseList(json, ']');
}

void WriteBinarySize(std::string& json, size_t bytes) {
  json += ",\"parameters\":{\"binary_data_size\":";
  AppendJsonInteger(json, bytes);
  json += '}';
}

void AppendElement(std::string& bytes, std::string_view text) {
  const uint32_t length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += text;
}

// Writes the classes of every batch row instead of the tensor.
base::Status WriteClasses(const core::ResponseOutput& output, const core::Model& model,
                          const OutputOptions& options, InferResponseBody& body) {
  std::span<const int64_t> dims = output.shape.dims();
  const bool is_batched = model.max_batch_size() > 0 && !dims.empty();
  const uint64_t rows = is_batched ? static_cast<uint64_t>(dims.front()) : 0;
  if (is_batched) dims = dims.subspan(1);
  const uint64_t row_elements = static_cast<uint64_t>(tensor::ElementCount(dims).value_or(0));
  const size_t row_bytes = static_cast<size_t>(row_elements) * tensor::ElementSize(output.type);
  std::span<const std::string> labels;
  if (output.model_index < model.outputs().size()) {
    labels = model.outputs()[output.model_index].labels;
  }
  std::string binary;
  std::string text = "[";
  for (uint64_t row = 0; row < std::max<uint64_t>(rows, 1); ++row) {
    const size_t offset = static_cast<size_t>(row) * row_bytes;
    const bool is_there = offset + row_bytes <= output.byte_size;
    NEREID_ASSIGN_OR_RETURN(
        const std::vector<std::string> classes,
        common::TopClasses({output.data + (is_there ? offset : 0), is_there ? row_bytes : 0},
                           output.type, options.class_count, labels));
    for (const std::string& name : classes) {
      if (options.is_binary) {
        AppendElement(binary, name);
      } else {
        AppendJsonString(text, name);
        text += ',';
      }
    }
  }
  CloseList(text, ']');
  body.json += ",\"datatype\":\"BYTES\"";
  tensor::Shape shape;
  if (rows > 0) shape.PushBack(static_cast<int64_t>(rows));
  shape.PushBack(static_cast<int64_t>(std::min<uint64_t>(options.class_count, row_elements)));
  WriteShape(body.json, shape.dims());
  if (!options.is_binary) {
    body.json += ",\"data\":";
    body.json += text;
    return base::OkStatus();
  }
  WriteBinarySize(body.json, binary.size());
  if (binary.empty()) return base::OkStatus();
  base::BufferRef buffer = base::AcquireBuffer(binary.size());
  if (!buffer) return base::UnavailableError("out of memory");
  std::memcpy(buffer.data(), binary.data(), binary.size());
  const void* const data = buffer.data();
  body.parts.push_back({data, binary.size(), std::move(buffer)});
  return base::OkStatus();
}

base::Status WriteOutput(const core::ResponseOutput& output, const core::Model& model,
                         const OutputOptions& options, InferResponseBody& body) {
  std::string& json = body.json;
  json += "{\"name\":";
  AppendJsonString(json, output.name);
  if (options.class_count > 0) {
    NEREID_RETURN_IF_ERROR(WriteClasses(output, model, options, body));
    json += "},";
    return base::OkStatus();
  }
  json += ",\"datatype\":\"";
  json += tensor::ProtocolName(output.type);
  json += '"';
  WriteShape(json, output.shape.dims());
  if (options.is_in_region) {
    // The output is in the client's shared memory already.
  } else if (options.is_binary) {
    WriteBinarySize(json, output.byte_size);
    if (output.byte_size > 0) body.parts.push_back({output.data, output.byte_size, {}});
  } else {
    json += ",\"data\":[";
    const auto count = tensor::ElementCount(output.shape.dims());
    if (!count) return SizeError("Failed to write 'data' field: ", output);
    NEREID_RETURN_IF_ERROR(WriteData(json, output, static_cast<uint64_t>(*count)));
    CloseList(json, ']');
  }
  json += "},";
  return base::OkStatus();
}

void WriteParameters(std::string& json, const std::vector<core::Parameter>& parameters) {
  json += ",\"parameters\":{";
  for (const core::Parameter& parameter : parameters) {
    AppendJsonString(json, parameter.name);
    json += ':';
    AppendJsonParameter(parameter.value, json);
    json += ',';
  }
  CloseList(json, '}');
}

}  // namespace

base::Status AppendJsonElements(const core::ResponseOutput& output, uint64_t count,
                                std::string& json) {
  NEREID_RETURN_IF_ERROR(WriteData(json, output, count));
  if (count > 0) json.pop_back();  // the last comma
  return base::OkStatus();
}

void AppendJsonParameter(const ParameterValue& value, std::string& json) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    AppendJsonString(json, *text);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    AppendJsonInteger(json, *integer);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    AppendJsonBool(json, *flag);
  } else {
    AppendJsonDouble(json, std::get<double>(value));
  }
}

void InferResponseBody::Clear() {
  json.clear();
  if (json.capacity() > kKeptBytes) std::string().swap(json);
  parts.clear();
}

base::Status WriteInferResponse(const core::Response& response, const ResponseOptions& options,
                                InferResponseBody& body) {
  const core::Request& request = response.request();
  const core::Model& model = *request.model;
  std::string& json = body.json;
  json += '{';
  if (!request.id.empty()) {
    json += "\"id\":";
    AppendJsonString(json, request.id);
    json += ',';
  }
  json += "\"model_name\":";
  AppendJsonString(json, model.name());
  json += ",\"model_version\":\"";
  json += model.version_text();
  json += '"';
  if (!response.parameters().empty()) WriteParameters(json, response.parameters());
  json += ",\"outputs\":[";
  for (size_t i = 0; i < response.output_count(); ++i) {
    const core::ResponseOutput& output = response.output(i);
    NEREID_RETURN_IF_ERROR(WriteOutput(output, model, OptionsOf(output, request, options), body));
  }
  CloseList(json, ']');
  json += '}';
  return base::OkStatus();
}

}  // namespace nereid::http
