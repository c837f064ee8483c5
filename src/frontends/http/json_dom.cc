// SPDX-License-Identifier: Apache-2.0
#include "http/json_dom.h"

#include <limits>

#include <rapidjson/encodedstream.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include "base/exact_number.h"

namespace nereid::http {
namespace {

base::Status ContextError(std::string_view context, std::string_view message) {
  std::string text(context);
  if (!text.empty()) text += ": ";
  text += message;
  return base::InternalError(std::move(text));
}

base::Status MissingMember(std::string_view context, const char* name) {
  return ContextError(context,
                      std::string("attempt to access non-existing object member '") + name + "'");
}

// Passes what RapidJSON reads to a document, but doubles exactly.
template <typename Stream>
class ExactNumbers {
 public:
  ExactNumbers(rapidjson::Document& document, std::string_view text, const Stream& stream)
      : document_(document), text_(text), stream_(stream) {}

  bool Double(double value) {
    // The stream is at the end of the number.
    return document_.Double(base::ExactNumber(value, text_, stream_.Tell()));
  }
  bool Null() { return document_.Null(); }
  bool Bool(bool value) { return document_.Bool(value); }
  bool Int(int value) { return document_.Int(value); }
  bool Uint(unsigned value) { return document_.Uint(value); }
  bool Int64(int64_t value) { return document_.Int64(value); }
  bool Uint64(uint64_t value) { return document_.Uint64(value); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool copies) {
    return document_.RawNumber(text, size, copies);
  }
  bool String(const char* text, rapidjson::SizeType size, bool copies) {
    return document_.String(text, size, copies);
  }
  bool StartObject() { return document_.StartObject(); }
  bool Key(const char* text, rapidjson::SizeType size, bool copies) {
    return document_.Key(text, size, copies);
  }
  bool EndObject(rapidjson::SizeType members) { return document_.EndObject(members); }
  bool StartArray() { return document_.StartArray(); }
  bool EndArray(rapidjson::SizeType elements) { return document_.EndArray(elements); }

 private:
  rapidjson::Document& document_;
  const std::string_view text_;
  const Stream& stream_;
};

}  // namespace

base::Status ParseJson(std::string_view text, rapidjson::Document& document) {
  // Lengths in a document have 32 bits: that of a longer text would begin again at 0.
  if (text.size() > std::numeric_limits<rapidjson::SizeType>::max()) {
    return base::InvalidArgumentError("request JSON of " + std::to_string(text.size()) +
                                      " bytes exceeds the maximum of 4294967295 bytes");
  }
  constexpr unsigned kFlags = rapidjson::kParseNanAndInfFlag | rapidjson::kParseIterativeFlag;
  rapidjson::ParseResult result;
  const auto parse = [&](rapidjson::Document& into) {
    rapidjson::MemoryStream source(text.data(), text.size());
    rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> stream(source);
    ExactNumbers handler(into, text, stream);
    rapidjson::Reader reader;
    result = reader.Parse<kFlags>(stream, handler);
    return !result.IsError();
  };
  document.Populate(parse);
  if (!result.IsError()) return base::OkStatus();
  return base::InternalError(std::string("failed to parse the request JSON buffer: ") +
                             rapidjson::GetParseError_En(result.Code()) + " at " +
                             std::to_string(result.Offset()));
}

const JsonValue* FindMember(const JsonValue& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

base::Result<std::string_view> JsonText(const JsonValue& value, std::string_view context) {
  if (!value.IsString()) {
    return ContextError(context, "attempt to access JSON non-string as string");
  }
  return std::string_view(value.GetString(), value.GetStringLength());
}

base::Result<bool> JsonBool(const JsonValue& value, std::string_view context) {
  if (!value.IsBool()) {
    return ContextError(context, "attempt to access JSON non-boolean as boolean");
  }
  return value.GetBool();
}

base::Result<uint64_t> JsonUnsigned(const JsonValue& value, std::string_view context) {
  if (!value.IsUint64()) {
    return ContextError(context, "attempt to access JSON non-unsigned-integer as unsigned-integer");
  }
  return value.GetUint64();
}

base::Result<std::string_view> TextMember(const JsonValue& object, const char* name,
                                          std::string_view context) {
  const JsonValue* const member = FindMember(object, name);
  if (member == nullptr) return MissingMember(context, name);
  return JsonText(*member, context);
}

base::Result<const JsonValue*> ArrayMember(const JsonValue& object, const char* name,
                                           std::string_view context) {
  const JsonValue* const member = FindMember(object, name);
  if (member == nullptr) return MissingMember(context, name);
  if (!member->IsArray()) return ContextError(context, "attempt to access JSON non-array as array");
  return member;
}

}  // namespace nereid::http
