// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/call_spec.h"

#include <rapidjson/document.h>

#include "backend_kit/config.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Kind = ValueType::Kind;
using rapidjson::Value;

namespace {

constexpr int kMaxDepth = 64;

Error Unreadable(std::string_view text) {
  return Error::InvalidArgument(
      StrCat("the call specification of the package cannot be read: ", text.substr(0, 200)));
}

// The keys of a dictionary or the fields of a named tuple. They are JSON in a string of the JSON.
std::vector<std::string> ReadKeys(const Value& node) {
  const Value* context = backend::Find(node, "context");
  rapidjson::Document inner;
  if (context != nullptr && context->IsString()) {
    inner.Parse<rapidjson::kParseIterativeFlag>(context->GetString(), context->GetStringLength());
    context = inner.HasParseError() ? nullptr : &inner;
  }
  std::vector<std::string> keys;
  if (context == nullptr || !context->IsArray()) {
    return keys;
  }
  for (const Value& key : context->GetArray()) {
    keys.push_back(key.IsString()  ? std::string(key.GetString(), key.GetStringLength())
                   : key.IsInt64() ? std::to_string(key.GetInt64())
                                   : std::string());
  }
  return keys;
}

std::string TextOf(const ValueType& type) {
  std::string text;
  for (size_t i = 0; i < type.elements.size(); ++i) {
    text += text.empty() ? "" : ", ";
    text += i < type.fields.size() ? type.fields[i] + ": " : std::string();
    text += type.elements[i].text;
  }
  return type.fields.empty() ? "Tuple[" + text + "]" : "Dict[" + text + "]";
}

Result<ValueType> ReadType(const Value& node, int depth) {
  if (!node.IsObject() || depth > kMaxDepth) {
    return Unreadable("it is nested too deeply or no object");
  }
  ValueType type{.kind = Kind::kTensor, .elements = {}, .fields = {}, .text = "Tensor"};
  if (backend::StringMember(node, "type").empty()) {
    return type;
  }
  type.kind = Kind::kTuple;
  for (const Value& child : backend::ArrayOf(node, "children_spec")) {
    NEREID_KIT_ASSIGN(ValueType element, ReadType(child, depth + 1));
    type.elements.push_back(std::move(element));
  }
  type.fields = ReadKeys(node);
  if (type.fields.size() != type.elements.size()) {
    type.fields.clear();
  }
  type.text = TextOf(type);
  return type;
}

// The texts are pairs of a version and the root.
Result<ValueType> ReadRoot(std::string_view text) {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (json.HasParseError() || !json.IsArray() || json.Size() != 2) {
    return Unreadable(text);
  }
  return ReadType(json[1], 0);
}

void AppendInputs(const ValueNode& node, std::vector<int>* inputs) {
  if (node.type->is_leaf()) {
    inputs->push_back(node.input);
  }
  for (const ValueNode& child : node.children) {
    AppendInputs(child, inputs);
  }
}

void AppendPaths(const ValueType& type, const std::string& path, std::vector<std::string>* paths) {
  if (type.is_leaf()) {
    paths->push_back(path);
  }
  for (size_t i = 0; i < type.elements.size(); ++i) {
    const std::string step = i < type.fields.size() ? type.fields[i] : std::to_string(i);
    AppendPaths(type.elements[i], StrCat(path, "[", step, "]"), paths);
  }
}

}  // namespace

Result<Signature> ReadCallSpec(std::string_view arguments, std::string_view result) {
  NEREID_KIT_ASSIGN(const ValueType call, ReadRoot(arguments));
  // A tuple of the positional arguments and a dictionary of those with names.
  if (call.elements.size() != 2 || call.elements[0].kind != Kind::kTuple ||
      call.elements[1].kind != Kind::kTuple) {
    return Unreadable(arguments);
  }
  Signature signature;
  for (const ValueType& type : call.elements[0].elements) {
    signature.arguments.push_back(
        {.name = StrCat("ARGS[", signature.arguments.size(), "]"), .type = type});
  }
  for (size_t k = 0; k < call.elements[1].elements.size(); ++k) {
    const ValueType& named = call.elements[1];
    signature.arguments.push_back(
        {.name = k < named.fields.size() ? named.fields[k] : "?", .type = named.elements[k]});
  }
  NEREID_KIT_ASSIGN(signature.result, ReadRoot(result));
  return signature;
}

size_t CountValues(const Signature& signature) {
  size_t count = 0;
  for (const Argument& argument : signature.arguments) {
    count += FlatPaths(argument.type).size();
  }
  return count;
}

std::vector<int> FlatInputs(std::span<const ValueNode> arguments) {
  std::vector<int> inputs;
  for (const ValueNode& argument : arguments) {
    AppendInputs(argument, &inputs);
  }
  return inputs;
}

std::vector<std::string> FlatPaths(const ValueType& result) {
  std::vector<std::string> paths;
  AppendPaths(result, "", &paths);
  return paths;
}

}  // namespace nereid::pytorch
