// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <string>

#include <rapidjson/encodedstream.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/exact_number.h"

namespace nereid::cli {
namespace {

// Far deeper than any tensor or reply. Copying and writing a document take stack for each level.
constexpr size_t kMaxDepth = 1000;

using JsonStream = rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream>;

// A document that takes what RapidJSON reads, but reads real numbers again: RapidJSON's own are
// wrong in the last digit (and so are those of its exact mode for some texts, in 1.1).
class ExactDocument : public rapidjson::Document {
 public:
  ExactDocument(std::string_view text, const JsonStream& stream) : text_(text), stream_(stream) {}

  bool Double(double value) {
    // The stream is at the end of the number.
    return Base::Double(base::ExactNumber(value, text_, stream_.Tell()));
  }
  bool StartObject() { return ++depth_ <= kMaxDepth && Base::StartObject(); }
  bool EndObject(rapidjson::SizeType members) { return --depth_, Base::EndObject(members); }
  bool StartArray() { return ++depth_ <= kMaxDepth && Base::StartArray(); }
  bool EndArray(rapidjson::SizeType elements) { return --depth_, Base::EndArray(elements); }

 private:
  using Base = rapidjson::Document;

  const std::string_view text_;
  const JsonStream& stream_;
  size_t depth_ = 0;
};

}  // namespace

bool ParseJson(std::string_view text, rapidjson::Document& document) {
  rapidjson::MemoryStream source(text.data(), text.size());
  JsonStream stream(source);
  ExactDocument exact(text, stream);
  rapidjson::ParseResult result;
  const auto parse = [&](rapidjson::Document&) {
    rapidjson::Reader reader;
    // Iterative, so that what is too deep is found before the stack is exhausted.
    result = reader.Parse < rapidjson::kParseIterativeFlag |
             rapidjson::kParseNanAndInfFlag > (stream, exact);
    return !result.IsError();
  };
  exact.Populate(parse);
  document.SetNull();
  if (result.IsError()) return false;
  document.Swap(exact);
  return true;
}

base::Result<rapidjson::Document> ParseReply(std::string_view body) {
  rapidjson::Document document;
  if (!ParseJson(body.empty() ? "{}" : body, document)) {
    return base::Status(base::StatusCode::kUnknown,
                        "the reply is not JSON: is this a server of models?");
  }
  return document;
}

const rapidjson::Value* MemberOf(const rapidjson::Value& object, std::string_view name) {
  if (!object.IsObject()) return nullptr;
  const rapidjson::Value key(rapidjson::StringRef(name.data(), name.size()));
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

std::string_view TextOf(const rapidjson::Value& object, std::string_view name) {
  const rapidjson::Value* const value = MemberOf(object, name);
  if (value == nullptr || !value->IsString()) return {};
  return {value->GetString(), value->GetStringLength()};
}

uint64_t NumberOf(const rapidjson::Value& object, std::string_view name) {
  const rapidjson::Value* const value = MemberOf(object, name);
  return value != nullptr && value->IsUint64() ? value->GetUint64() : 0;
}

rapidjson::Value::ConstArray ListOf(const rapidjson::Value& object, std::string_view name) {
  static const rapidjson::Value kNothing(rapidjson::kArrayType);
  const rapidjson::Value* const value = MemberOf(object, name);
  return value != nullptr && value->IsArray() ? value->GetArray() : kNothing.GetArray();
}

rapidjson::Value TextValue(std::string_view text, rapidjson::Document& document) {
  return {text.data(), static_cast<rapidjson::SizeType>(text.size()), document.GetAllocator()};
}

void AddMember(rapidjson::Document& document, rapidjson::Value& object, const char* name,
               rapidjson::Value value) {
  object.AddMember(rapidjson::StringRef(name), value, document.GetAllocator());
}

std::string WriteJson(const rapidjson::Value& document) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  document.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace nereid::cli
