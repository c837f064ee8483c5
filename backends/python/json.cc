// SPDX-License-Identifier: Apache-2.0
#include "python_backend/json.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <charconv>
#include <optional>
#include <system_error>

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;

// Passes values to a document within the limits, and stops the reader at the first value beyond
// them.
class Bounded {
 public:
  using Ch = char;
  using Size = rapidjson::SizeType;

  Bounded(rapidjson::Document& to, const JsonLimits& limits, std::string_view text,
          const rapidjson::MemoryStream& stream)
      : to_(to), limits_(limits), text_(text), stream_(stream) {}

  bool is_too_deep() const { return is_too_deep_; }
  bool has_too_many() const { return values_ > limits_.values; }
  bool has_wrong_text() const { return has_wrong_text_; }

  bool Null() { return Counts() && to_.Null(); }
  bool Bool(bool value) { return Counts() && to_.Bool(value); }
  bool Int(int value) { return Counts() && to_.Int(value); }
  bool Uint(unsigned value) { return Counts() && to_.Uint(value); }
  bool Int64(int64_t value) { return Counts() && to_.Int64(value); }
  bool Uint64(uint64_t value) { return Counts() && to_.Uint64(value); }
  bool Double(double value) { return Counts() && to_.Double(Exactly(value)); }
  bool RawNumber(const char* text, Size size, bool copy) {
    return Counts() && to_.RawNumber(text, size, copy);
  }
  bool String(const char* text, Size size, bool copy) {
    return Counts() && IsUtf8({text, size}) && to_.String(text, size, copy);
  }
  bool Key(const char* text, Size size, bool copy) {
    return IsUtf8({text, size}) && to_.Key(text, size, copy);
  }
  bool StartObject() { return Enters() && to_.StartObject(); }
  bool EndObject(Size count) { return Leaves() && to_.EndObject(count); }
  bool StartArray() { return Enters() && to_.StartArray(); }
  bool EndArray(Size count) { return Leaves() && to_.EndArray(count); }

 private:
  // Reads the number at whose end the stream is again: RapidJSON rounds it, and its own exact mode
  // does not keep to C++ (it shifts by the leading zeros of zero).
  double Exactly(double value) const {
    const size_t end = stream_.Tell();
    size_t begin = end;
    while (begin > 0 && std::string_view("0123456789+-.eE").find(text_[begin - 1]) != text_.npos) {
      --begin;
    }
    double exact = 0;
    const auto read = std::from_chars(text_.data() + begin, text_.data() + end, exact);
    return read.ec == std::errc() && read.ptr == text_.data() + end ? exact : value;
  }
  bool Counts() { return ++values_ <= limits_.values; }
  // The only invalid UTF-8 that the reader accepts is a half of a surrogate pair.
  bool IsUtf8(std::string_view text) {
    for (size_t i = 1; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      has_wrong_text_ = has_wrong_text_ || (text[i - 1] == '\xed' && byte >= 0xa0);
    }
    return !has_wrong_text_;
  }
  bool Enters() {
    is_too_deep_ = depth_ == limits_.depth;
    return !is_too_deep_ && Counts() && ++depth_ > 0;
  }
  bool Leaves() {
    --depth_;
    return true;
  }

  rapidjson::Document& to_;
  const JsonLimits limits_;
  const std::string_view text_;
  const rapidjson::MemoryStream& stream_;
  uint32_t depth_ = 0;
  uint32_t values_ = 0;
  bool is_too_deep_ = false;
  bool has_wrong_text_ = false;
};

}  // namespace

Result<rapidjson::Document> ParseObject(const std::string& text, std::string_view what,
                                        const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return Error::InvalidArgument(StrCat(what, " are longer than ", limits.bytes, " bytes"));
  }
  rapidjson::Document document;
  std::optional<Bounded> bounded;
  const auto read = [&](rapidjson::Document& handler) {
    rapidjson::MemoryStream stream(text.data(), text.size());
    bounded.emplace(handler, limits, text, stream);
    rapidjson::Reader reader;
    // The reader does not recurse, and validates texts, because the server passes them on as UTF-8.
    constexpr unsigned kFlags =
        rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
    const auto result = limits.takes_nan ? reader.Parse < kFlags |
                                               rapidjson::kParseNanAndInfFlag > (stream, *bounded)
                                         : reader.Parse<kFlags>(stream, *bounded);
    return !result.IsError();
  };
  document.Populate(read);
  if (bounded->is_too_deep()) {
    return Error::InvalidArgument(StrCat(what, " are nested more than ", limits.depth, " deep"));
  }
  if (bounded->has_too_many()) {
    return Error::InvalidArgument(StrCat(what, " have more than ", limits.values, " values"));
  }
  if (bounded->has_wrong_text()) {
    return Error::InvalidArgument(StrCat(what, " have a text that is not UTF-8"));
  }
  if (!document.IsObject()) {
    return Error::InvalidArgument(StrCat(what, " are not a JSON object"));
  }
  return document;
}

}  // namespace nereid::python
