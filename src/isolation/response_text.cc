// SPDX-License-Identifier: Apache-2.0
#include "isolation/response_text.h"

#include <rapidjson/document.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/exact_number.h"

namespace nereid::isolation {
namespace {

// Writes doubles that JSON has no form for as Python does.
using NumberWriter =
    rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                      rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>;

// A document whose doubles are exact.
class ExactDocument : public rapidjson::Document {
 public:
  ExactDocument(std::string_view text, const rapidjson::MemoryStream& stream)
      : text_(text), stream_(stream) {}
  bool Double(double value) {
    // The stream is at the end of the number.
    return rapidjson::Document::Double(base::ExactNumber(value, text_, stream_.Tell()));
  }

 private:
  const std::string_view text_;
  const rapidjson::MemoryStream& stream_;
};

rapidjson::SizeType SizeOf(std::string_view text) {
  return static_cast<rapidjson::SizeType>(text.size());
}

}  // namespace

std::string ParametersText(const std::vector<core::Parameter>& parameters) {
  if (parameters.empty()) return {};
  rapidjson::StringBuffer text;
  NumberWriter writer(text);
  writer.StartObject();
  for (const core::Parameter& parameter : parameters) {
    writer.Key(parameter.name.data(), SizeOf(parameter.name));
    if (const auto* string = std::get_if<std::string_view>(&parameter.value)) {
      writer.String(string->data(), SizeOf(*string));
    } else if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
      writer.Int64(*number);
    } else if (const auto* flag = std::get_if<bool>(&parameter.value)) {
      writer.Bool(*flag);
    } else {
      writer.Double(std::get<double>(parameter.value));
    }
  }
  writer.EndObject();
  return {text.GetString(), text.GetSize()};
}

base::Status ReadParameters(std::string_view json, core::Request& request) {
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;
  rapidjson::MemoryStream stream(json.data(), json.size());
  ExactDocument document(json, stream);
  const auto parse = [&](rapidjson::Document&) {
    rapidjson::Reader reader;
    return !reader.Parse<kFlags>(stream, document).IsError();
  };
  document.Populate(parse);
  if (!document.IsObject()) {
    return base::InvalidArgumentError("the parameters of the request are not a JSON object");
  }
  memory::Arena& arena = request.arena();
  for (const auto& [key, value] : document.GetObject()) {
    core::Parameter parameter{.name = arena.Copy({key.GetString(), key.GetStringLength()}),
                              .value = false};
    if (value.IsString()) {
      parameter.value = arena.Copy({value.GetString(), value.GetStringLength()});
    } else if (value.IsInt64()) {
      parameter.value = value.GetInt64();
    } else if (value.IsNumber()) {
      parameter.value = value.GetDouble();
    } else {
      parameter.value = value.IsTrue();
    }
    request.parameters.push_back(parameter);
  }
  return {};
}

}  // namespace nereid::isolation
