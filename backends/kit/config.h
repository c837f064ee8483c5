// SPDX-License-Identifier: Apache-2.0
// The model configuration as a backend sees it: the server's JSON, read with defaults for absent
// fields, and written back when a backend completes it.
#pragma once

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/handles.h"

namespace nereid::backend {

// Returns member `key` of an object, or null if it is absent or null, or if `object` is not an
// object.
inline const rapidjson::Value* Find(const rapidjson::Value& object, std::string_view key) {
  if (!object.IsObject()) {
    return nullptr;
  }
  const auto it = object.FindMember(rapidjson::Value(rapidjson::StringRef(key.data(), key.size())));
  return it == object.MemberEnd() || it->value.IsNull() ? nullptr : &it->value;
}

// Returns the value as JSON text.
inline std::string JsonText(const rapidjson::Value& value) {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  value.Accept(writer);
  return {text.GetString(), text.GetSize()};
}

// Returns the string `key`; empty if absent.
inline std::string_view StringMember(const rapidjson::Value& object, std::string_view key) {
  const rapidjson::Value* value = Find(object, key);
  return value != nullptr && value->IsString()
             ? std::string_view(value->GetString(), value->GetStringLength())
             : std::string_view();
}

// Returns a number, also one that protobuf's JSON spells as a string; `otherwise` for anything
// else.
inline int64_t AsInt(const rapidjson::Value& value, int64_t otherwise) {
  if (value.IsInt64()) {
    return value.GetInt64();
  }
  return value.IsString() ? std::strtoll(value.GetString(), nullptr, 10) : otherwise;
}

inline int64_t IntMember(const rapidjson::Value& object, std::string_view key, int64_t otherwise) {
  const rapidjson::Value* value = Find(object, key);
  return value == nullptr ? otherwise : AsInt(*value, otherwise);
}

// Returns the boolean `key`; false if absent.
inline bool BoolMember(const rapidjson::Value& object, std::string_view key) {
  const rapidjson::Value* value = Find(object, key);
  return value != nullptr && value->IsBool() && value->GetBool();
}

// Returns the array `key`; empty if absent.
inline rapidjson::Value::ConstArray ArrayOf(const rapidjson::Value& object, std::string_view key) {
  static const rapidjson::Value kEmpty(rapidjson::kArrayType);
  const rapidjson::Value* value = Find(object, key);
  return value != nullptr && value->IsArray() ? value->GetArray() : kEmpty.GetArray();
}

// Returns the integers of array `key`: "dims", or "shape" of a reshape.
inline std::vector<int64_t> DimsMember(const rapidjson::Value& object, std::string_view key) {
  std::vector<int64_t> dims;
  for (const rapidjson::Value& dim : ArrayOf(object, key)) {
    dims.push_back(AsInt(dim, 0));
  }
  return dims;
}

// Returns the model's own dimensions of this tensor: its reshape if it has one, else its dims.
inline std::vector<int64_t> ModelDims(const rapidjson::Value& tensor) {
  const rapidjson::Value* reshape = Find(tensor, "reshape");
  return reshape != nullptr ? DimsMember(*reshape, "shape") : DimsMember(tensor, "dims");
}

// Parse numbers and booleans that users write as text, in parameters and on the command line.
inline Result<int> ParseInt(const std::string& text) {
  errno = 0;
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || errno == ERANGE || value < INT_MIN || value > INT_MAX) {
    return Error::InvalidArgument(StrCat("failed to convert '", text, "' to integral number"));
  }
  return static_cast<int>(value);
}

inline Result<bool> ParseBool(const std::string& text) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower == "true" || lower == "on" || lower == "1") {
    return true;
  }
  if (lower == "false" || lower == "off" || lower == "0") {
    return false;
  }
  return Error::InvalidArgument(StrCat("failed to convert '", text, "' to boolean"));
}

// Parses `text` as one JSON object; `what` names it in the error.
inline Result<rapidjson::Document> ParseJson(std::string_view text, const char* what) {
  rapidjson::Document document;
  document.Parse(text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) {
    return Error::Internal(StrCat("failed to parse the ", what, " as a JSON object"));
  }
  return document;
}

// One model's configuration. Thread-compatible; immutable after loading in ordinary use.
class ModelConfig {
 public:
  // Reads the current configuration of `model` from the server.
  static Result<ModelConfig> Load(TRITONBACKEND_Model* model) {
    TRITONSERVER_Message* raw = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelConfig(model, 1, &raw));
    const Message message(raw);
    NEREID_KIT_ASSIGN(const std::string_view text, MessageText(raw));
    return Parse(text);
  }
  // Reads a configuration from JSON text.
  static Result<ModelConfig> Parse(std::string_view text) {
    NEREID_KIT_ASSIGN(rapidjson::Document document, ParseJson(text, "model configuration"));
    return ModelConfig(std::move(document));
  }

  const rapidjson::Value& json() const { return document_; }
  // For a backend that completes the configuration; see Store.
  rapidjson::Document& mutable_json() { return document_; }

  int64_t max_batch_size() const { return IntMember(document_, "max_batch_size", 0); }
  // Returns the entries of "input" or "output".
  rapidjson::Value::ConstArray tensors(const char* key) const { return ArrayOf(document_, key); }
  // Returns the text of parameters[key].string_value, if there is such a parameter.
  std::optional<std::string> Parameter(std::string_view key) const {
    const rapidjson::Value* all = Find(document_, "parameters");
    const rapidjson::Value* one = all == nullptr ? nullptr : Find(*all, key);
    if (one == nullptr) {
      return std::nullopt;
    }
    return std::string(StringMember(*one, "string_value"));
  }
  // Return a parameter as a number or a boolean; `otherwise` if there is no such parameter.
  Result<int> IntParameter(std::string_view key, int otherwise) const {
    const auto text = Parameter(key);
    return text ? ParseInt(*text) : Result<int>(otherwise);
  }
  Result<bool> BoolParameter(std::string_view key, bool otherwise) const {
    const auto text = Parameter(key);
    return text ? ParseBool(*text) : Result<bool>(otherwise);
  }

  // Completes the configuration: adds a tensor to "input" or "output". `dims` are without the batch
  // dimension.
  void AddTensor(const char* key, std::string_view name, std::string_view type,
                 std::span<const int64_t> dims) {
    auto& allocator = document_.GetAllocator();
    const auto text = [&](std::string_view from) {
      return rapidjson::Value(from.data(), static_cast<rapidjson::SizeType>(from.size()),
                              allocator);
    };
    rapidjson::Value tensor(rapidjson::kObjectType);
    tensor.AddMember("name", text(name), allocator);
    tensor.AddMember("data_type", text(type), allocator);
    rapidjson::Value sizes(rapidjson::kArrayType);
    for (const int64_t dim : dims) {
      sizes.PushBack(dim, allocator);
    }
    tensor.AddMember("dims", sizes, allocator);
    if (Find(document_, key) == nullptr) {
      SetMember(key, rapidjson::Value(rapidjson::kArrayType));
    }
    document_[key].PushBack(tensor, allocator);
  }
  void SetMaxBatchSize(int64_t size) { SetMember("max_batch_size", rapidjson::Value(size)); }
  // Sets the value of `key`.
  void SetMember(const char* key, rapidjson::Value value) {
    document_.RemoveMember(key);
    document_.AddMember(rapidjson::Value(key, document_.GetAllocator()), value,
                        document_.GetAllocator());
  }

  // Passes the completed configuration to the server, which normalises it: Load it again
  // afterwards.
  Error Store(TRITONBACKEND_Model* model) const {
    const std::string text = JsonText(document_);
    TRITONSERVER_Message* raw = nullptr;
    NEREID_KIT_TRY(TRITONSERVER_MessageNewFromSerializedJson(&raw, text.data(), text.size()));
    const Message message(raw);
    return Error(TRITONBACKEND_ModelSetConfig(model, 1, raw));
  }

 private:
  explicit ModelConfig(rapidjson::Document document) : document_(std::move(document)) {}

  rapidjson::Document document_;
};

}  // namespace nereid::backend
