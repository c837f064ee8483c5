// SPDX-License-Identifier: Apache-2.0
#include "cli/infer_request.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "cli/json.h"

namespace nereid::cli {
namespace {

constexpr const char* kHeaderLength = "inference-header-content-length";

// A number or a boolean where the text is one, else a text.
rapidjson::Value ParameterValue(std::string_view text, rapidjson::Document& document) {
  rapidjson::Document parsed;
  if (ParseJson(text, parsed) && (parsed.IsNumber() || parsed.IsBool() || parsed.IsString())) {
    return {parsed, document.GetAllocator()};
  }
  return TextValue(text, document);
}

base::Status AddParameters(const InferArguments& arguments, rapidjson::Document& document) {
  rapidjson::Value parameters(rapidjson::kObjectType);
  for (const std::string_view text : arguments.parameters) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return RefuseArgument(fmt::format("--parameter '{}'", text), "expected NAME=VALUE");
    }
    parameters.AddMember(TextValue(text.substr(0, equals), document),
                         ParameterValue(text.substr(equals + 1), document),
                         document.GetAllocator());
  }
  AddMember(document, parameters, "binary_data_output", rapidjson::Value(true));
  AddMember(document, document, "parameters", std::move(parameters));
  return base::OkStatus();
}

rapidjson::Value InputValue(InferInput& input, rapidjson::Document& document) {
  auto& allocator = document.GetAllocator();
  rapidjson::Value value(rapidjson::kObjectType);
  AddMember(document, value, "name", TextValue(input.metadata->name, document));
  AddMember(document, value, "datatype", TextValue(input.metadata->datatype, document));
  rapidjson::Value shape(rapidjson::kArrayType);
  for (const int64_t size : input.shape) shape.PushBack(size, allocator);
  AddMember(document, value, "shape", std::move(shape));
  if (input.json) {
    AddMember(document, value, "data", rapidjson::Value(*input.json, allocator));
  } else {
    rapidjson::Value parameters(rapidjson::kObjectType);
    AddMember(document, parameters, "binary_data_size",
              rapidjson::Value(uint64_t{input.bytes.size()}));
    AddMember(document, value, "parameters", std::move(parameters));
  }
  return value;
}

base::Status AddOutputs(const InferArguments& arguments, const ModelMetadata& model,
                        rapidjson::Document& document) {
  std::vector<std::string> names = arguments.outputs;
  for (const std::string& name : names) {
    if (std::ranges::find(model.outputs, name, &TensorMetadata::name) == model.outputs.end()) {
      return RefuseArgument(
          fmt::format("--output '{}'", name),
          fmt::format("there is no such output; {}", KnownNames(name, model.outputs)));
    }
  }
  // Classes are asked for by output.
  if (names.empty() && arguments.classes > 0) {
    for (const TensorMetadata& tensor : model.outputs) names.push_back(tensor.name);
  }
  if (names.empty()) return base::OkStatus();
  rapidjson::Value outputs(rapidjson::kArrayType);
  for (const std::string& name : names) {
    rapidjson::Value parameters(rapidjson::kObjectType);
    AddMember(document, parameters, "binary_data", rapidjson::Value(true));
    if (arguments.classes > 0) {
      AddMember(document, parameters, "classification", rapidjson::Value(arguments.classes));
    }
    rapidjson::Value output(rapidjson::kObjectType);
    AddMember(document, output, "name", TextValue(name, document));
    AddMember(document, output, "parameters", std::move(parameters));
    outputs.PushBack(output, document.GetAllocator());
  }
  AddMember(document, document, "outputs", std::move(outputs));
  return base::OkStatus();
}

// The id of the request's sequence as a header can carry it, by which balancers choose the replica
// (docs/balancers.md); empty if there is none, or if it has other characters than those of ASCII
// that can be seen.
std::string SequenceHeader(const rapidjson::Document& document) {
  const rapidjson::Value* const parameters = MemberOf(document, "parameters");
  const rapidjson::Value* const id =
      parameters == nullptr ? nullptr : MemberOf(*parameters, "sequence_id");
  if (id == nullptr) return "";
  if (id->IsUint64()) return id->GetUint64() == 0 ? "" : fmt::format("{}", id->GetUint64());
  if (!id->IsString()) return "";
  std::string text(id->GetString(), id->GetStringLength());
  const bool can_be_seen = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  return can_be_seen ? text : "";
}

// Splits the body into the JSON in front and the binary data of outputs.
std::pair<std::string_view, std::string_view> SplitBody(const ServerReply& reply) {
  const std::string_view body = reply.body;
  const auto header = reply.headers.find(kHeaderLength);
  size_t length = body.size();
  if (header != reply.headers.end()) {
    const std::string& text = header->second;
    std::from_chars(text.data(), text.data() + text.size(), length);
  }
  length = std::min(length, body.size());
  return {body.substr(0, length), body.substr(length)};
}

}  // namespace

base::Result<InferBody> MakeInferBody(const InferArguments& arguments, const ModelMetadata& model) {
  NEREID_ASSIGN_OR_RETURN(std::vector<InferInput> inputs, ReadInferInputs(arguments, model));
  return MakeInferBody(arguments, model, std::move(inputs));
}

base::Result<InferBody> MakeInferBody(const InferArguments& arguments, const ModelMetadata& model,
                                      std::vector<InferInput> inputs) {
  rapidjson::Document document;
  document.SetObject();
  if (!arguments.id.empty()) {
    AddMember(document, document, "id", TextValue(arguments.id, document));
  }
  NEREID_RETURN_IF_ERROR(AddParameters(arguments, document));
  rapidjson::Value values(rapidjson::kArrayType);
  for (InferInput& input : inputs) {
    values.PushBack(InputValue(input, document), document.GetAllocator());
  }
  AddMember(document, document, "inputs", std::move(values));
  NEREID_RETURN_IF_ERROR(AddOutputs(arguments, model, document));
  InferBody result{.body = WriteJson(document), .headers = {}};
  result.headers = {{"content-type", "application/octet-stream"},
                    {kHeaderLength, fmt::format("{}", result.body.size())}};
  if (std::string id = SequenceHeader(document); !id.empty()) {
    result.headers.emplace("x-sequence-id", std::move(id));
  }
  for (const InferInput& input : inputs) result.body += input.bytes;
  return result;
}

base::Result<InferReply> ReadInferReply(const ServerReply& reply) {
  auto [json, data] = SplitBody(reply);
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseReply(json));
  InferReply result{.model = std::string(TextOf(document, "model_name")),
                    .version = std::string(TextOf(document, "model_version")),
                    .id = std::string(TextOf(document, "id")),
                    .parameters = {},
                    .outputs = {}};
  if (const rapidjson::Value* const parameters = MemberOf(document, "parameters")) {
    result.parameters = WriteJson(*parameters);
  }
  for (const rapidjson::Value& value : ListOf(document, "outputs")) {
    InferOutput output{.name = std::string(TextOf(value, "name")),
                       .datatype = std::string(TextOf(value, "datatype"))};
    for (const rapidjson::Value& size : ListOf(value, "shape")) {
      output.shape.push_back(size.IsInt64() ? size.GetInt64() : kAnySize);
    }
    if (const rapidjson::Value* const list = MemberOf(value, "data")) {
      output.json = WriteJson(*list);
    } else {
      const rapidjson::Value* const parameters = MemberOf(value, "parameters");
      const uint64_t size = parameters == nullptr ? 0 : NumberOf(*parameters, "binary_data_size");
      if (size > data.size()) return UnknownReply();
      output.bytes = data.substr(0, size);
      data.remove_prefix(size);
    }
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace nereid::cli
