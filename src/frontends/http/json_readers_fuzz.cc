// SPDX-License-Identifier: Apache-2.0
// Fuzzes the readers of JSON against each other: what the cursor of the quick reader accepts, the
// document reader accepts too, with the same values. The readers of generate requests and of
// changes of rules for versions get the same text.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/check.h"
#include "core/model.h"
#include "core/testing/fakes.h"
#include "fuzz/fuzz.h"
#include "http/generate_request.h"
#include "http/json_cursor.h"
#include "http/json_dom.h"
#include "http/traffic_change.h"

namespace {

namespace core = nereid::core;
namespace http = nereid::http;
using http::JsonCursor;

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr, bool) override {}
};

// Whether `take` takes the whole text.
template <typename Take>
bool IsTaken(std::string_view text, const Take& take) {
  JsonCursor cursor(text);
  return take(cursor) && cursor.IsAtEnd();
}

void CompareNumbers(std::string_view text, const http::JsonValue& value) {
  std::optional<uint64_t> natural;
  if (IsTaken(text, [&](auto& cursor) { return (natural = cursor.Unsigned()).has_value(); })) {
    NEREID_CHECK(value.IsUint64() && value.GetUint64() == *natural);
  }
  std::optional<int64_t> integer;
  if (IsTaken(text, [&](auto& cursor) { return (integer = cursor.Signed()).has_value(); })) {
    // The document has no integer zero with a sign.
    NEREID_CHECK(value.IsInt64() ? value.GetInt64() == *integer
                                 : value.GetDouble() == static_cast<double>(*integer));
  }
  std::optional<double> real;
  if (IsTaken(text, [&](auto& cursor) { return (real = cursor.Double()).has_value(); })) {
    NEREID_CHECK(value.IsNumber() && value.GetDouble() == *real);
    NEREID_CHECK(std::isfinite(*real));
  }
}

void Compare(std::string_view text) {
  rapidjson::Document document;
  const auto parsed = http::ParseJson(text, document);
  NEREID_CHECK(parsed.ok() || !parsed.message().empty());
  const bool is_skipped = IsTaken(text, [](auto& cursor) { return cursor.Skip(); });
  NEREID_CHECK(!is_skipped || parsed.ok());
  std::string taken;
  if (IsTaken(text, [&](auto& cursor) { return cursor.AppendText(taken); })) {
    NEREID_CHECK(parsed.ok() && document.IsString());
    NEREID_CHECK(taken == std::string_view(document.GetString(), document.GetStringLength()));
  }
  std::optional<std::string_view> plain;
  if (IsTaken(text, [&](auto& cursor) { return (plain = cursor.Text()).has_value(); })) {
    NEREID_CHECK(*plain == taken);
  }
  if (parsed.ok() && document.IsNumber()) CompareNumbers(text, document);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      R"("a\u00e9\ud83d\ude00\n\/\\\"")",
      R"("plain")",
      "-0",
      "18446744073709551615",
      "-9223372036854775808",
      " 0.1e-22 ",
      "1.7976931348623157e308",
      R"({"text_input":"hello","parameters":{"stream":true,"n":[1,2,{"a":null}]},"INPUT0":[1,2]})",
      R"({"INPUT0":[1.5,-2,3e2,4],"id":"7","sequence_id":1})",
      R"({"labels":{"a":1,"b":null},"canary":{"version":2,"percent":0.5},"shadow":null})",
      "[[[[true,false,null,NaN]]]]"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static core::Model* const model = core::MakeFakeModel(0, {-1}).release();
  static NoSink sink;
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<char[]>(size);
  std::copy_n(reinterpret_cast<const char*>(data), size, copy.get());
  const std::string_view text(copy.get(), size);
  Compare(text);
  const auto change = http::ReadTrafficChange(text);
  NEREID_CHECK(change.ok() || !change.status().message().empty());
  core::RequestPtr request = core::Request::Create(sink);
  NEREID_CHECK(model->TryPin());
  request->model = core::ModelHandle(*model);
  const auto read = http::ReadGenerateRequest(text, 1 << 16, *request);
  NEREID_CHECK(read.ok() || !read.message().empty());
  return 0;
}
