// SPDX-License-Identifier: Apache-2.0
#include "cli/grpc_message.h"

#include <cstdint>
#include <cstring>

#include <rapidjson/document.h>

#include "cli/json.h"

namespace nereid::cli {
namespace {

// The fields of the messages in proto/grpc_service.proto.
enum RequestField { kModelName = 1, kModelVersion = 2, kParameters = 4, kInputs = 5, kRaw = 7 };
enum InputField { kName = 1, kDatatype = 2, kShape = 3 };
enum EntryField { kKey = 1, kValue = 2 };
enum ParameterField { kBool = 1, kInt64 = 2, kString = 3, kDouble = 4, kUint64 = 5 };
enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2 };

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendTag(std::string& out, int field, WireType type) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | type);
}

void AppendText(std::string& out, int field, std::string_view text) {
  AppendTag(out, field, kLength);
  AppendVarint(out, text.size());
  out += text;
}

void AppendInteger(std::string& out, int field, int64_t value) {
  AppendTag(out, field, kVarint);
  AppendVarint(out, static_cast<uint64_t>(value));
}

std::string ParameterMessage(std::string_view text) {
  std::string out;
  rapidjson::Document value;
  ParseJson(text, value);
  if (value.IsBool()) {
    AppendInteger(out, kBool, value.GetBool() ? 1 : 0);
  } else if (value.IsInt64()) {
    AppendInteger(out, kInt64, value.GetInt64());
  } else if (value.IsUint64()) {
    AppendTag(out, kUint64, kVarint);
    AppendVarint(out, value.GetUint64());
  } else if (value.IsNumber()) {
    const double number = value.GetDouble();
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    AppendTag(out, kDouble, kFixed64);
    out.append(bytes, sizeof bytes);
  } else {
    AppendText(
        out, kString,
        value.IsString() ? std::string_view(value.GetString(), value.GetStringLength()) : text);
  }
  return out;
}

std::string InputMessage(const InferInput& input) {
  std::string out;
  AppendText(out, kName, input.metadata->name);
  AppendText(out, kDatatype, input.metadata->datatype);
  std::string sizes;
  for (const int64_t size : input.shape) AppendVarint(sizes, static_cast<uint64_t>(size));
  AppendText(out, kShape, sizes);
  return out;
}

}  // namespace

std::string GrpcInferMessage(std::string_view model, std::string_view version,
                             const std::vector<std::string>& parameters,
                             const std::vector<InferInput>& inputs) {
  std::string out;
  AppendText(out, kModelName, model);
  if (!version.empty()) AppendText(out, kModelVersion, version);
  for (const std::string_view parameter : parameters) {
    const size_t equals = parameter.find('=');
    std::string entry;
    AppendText(entry, kKey, parameter.substr(0, equals));
    AppendText(entry, kValue, ParameterMessage(parameter.substr(equals + 1)));
    AppendText(out, kParameters, entry);
  }
  for (const InferInput& input : inputs) AppendText(out, kInputs, InputMessage(input));
  for (const InferInput& input : inputs) AppendText(out, kRaw, input.bytes);
  return out;
}

}  // namespace nereid::cli
