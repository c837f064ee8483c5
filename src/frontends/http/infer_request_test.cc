// SPDX-License-Identifier: Apache-2.0
// The quick and the exact reader side by side: what both accept must have the same meaning, and the
// quick reader must not accept what Triton refuses.
#include "http/infer_request.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "http/quick_reader.h"
#include "http/testing/fake_service.h"

namespace nereid::http {
namespace {

using tensor::DataType;

constexpr size_t kLimit = 4096;

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
};

// A body in a buffer with exactly the padding that readers may read.
class Body {
 public:
  Body(std::string_view json, std::string_view binary)
      : json_size_(json.size()), size_(json.size() + binary.size()) {
    bytes_.reserve(size_ + 64);
    bytes_.append(json).append(binary).append(64, '\0');
  }
  std::string_view json() const { return std::string_view(bytes_).substr(0, json_size_); }
  std::string_view binary() const {
    return std::string_view(bytes_).substr(json_size_, size_ - json_size_);
  }
  InferBody body() const { return {std::string_view(bytes_).substr(0, size_), json_size_}; }

 private:
  std::string bytes_;
  size_t json_size_;
  size_t size_;
};

// Describes everything that a reader writes into a request, as text that can be compared.
std::string Describe(const core::Request& request, const ResponseOptions& response_options) {
  std::string text = "id=" + std::string(request.id);
  text += " flags=" + std::to_string(request.flags) + " prio=" + std::to_string(request.priority) +
          " timeout=" + std::to_string(request.timeout_us) +
          " binary=" + std::to_string(response_options.is_binary_by_default);
  if (const auto* name = std::get_if<std::string_view>(&request.correlation_id)) {
    text += " sequence='" + std::string(*name) + "'";
  } else {
    text += " sequence=" + std::to_string(std::get<uint64_t>(request.correlation_id));
  }
  for (const core::Parameter& parameter : request.parameters) {
    text += " " + std::string(parameter.name) + ":" + std::to_string(parameter.value.index()) + "=";
    std::visit(
        [&text](const auto& value) {
          if constexpr (std::is_same_v<decltype(value), const std::string_view&>) {
            text += value;
          } else {
            text += std::to_string(value);
          }
        },
        parameter.value);
  }
  for (const core::RequestInput& input : request.inputs) {
    text += "\n" + std::string(input.name) + " " + std::string(tensor::ProtocolName(input.type)) +
            " " + tensor::ToString(input.shape) + " ";
    for (size_t c = 0; c < input.chunk_count(); ++c) {
      const core::DataChunk& chunk = input.chunk(c);
      for (size_t i = 0; i < chunk.size; ++i) {
        static constexpr char kHex[] = "0123456789abcdef";
        text += kHex[static_cast<uint8_t>(chunk.data[i]) >> 4];
        text += kHex[static_cast<uint8_t>(chunk.data[i]) & 15];
      }
    }
  }
  for (const core::RequestedOutput& output : request.outputs) {
    const OutputOptions& options = response_options.outputs[output.tag];
    text += "\n-> " + std::string(output.name) + " " + std::to_string(options.is_binary) + " " +
            std::to_string(options.class_count);
  }
  return text;
}

struct Outcome {
  base::Status status;
  std::string description;
};

class InferRequestTest : public testing::Test {
 protected:
  core::RequestPtr NewRequest() {
    core::RequestPtr request = core::Request::Create(sink_);
    request->model = Pin(*model_);
    return request;
  }
  Outcome Exactly(std::string_view json, std::string_view binary = "") {
    const Body body(json, binary);
    core::RequestPtr request = NewRequest();
    ResponseOptions response_options;
    Outcome outcome;
    outcome.status =
        infer_internal::ReadExactly(body.json(), body.binary(), kLimit, *request, response_options);
    if (outcome.status.ok()) outcome.description = Describe(*request, response_options);
    return outcome;
  }
  // Returns nothing if the quick reader rejects the text.
  std::optional<std::string> Quickly(std::string_view json, std::string_view binary = "") {
    const Body body(json, binary);
    core::RequestPtr request = NewRequest();
    ResponseOptions response_options;
    if (!quick_.Read(body.json(), body.binary(), *request, response_options)) return std::nullopt;
    return Describe(*request, response_options);
  }
  // Requires that both readers accept the text, with the same result.
  std::string Both(std::string_view json, std::string_view binary = "") {
    const Outcome exact = Exactly(json, binary);
    EXPECT_TRUE(exact.status.ok()) << exact.status.message() << "\n" << json;
    const auto quick = Quickly(json, binary);
    EXPECT_TRUE(quick.has_value()) << json;
    EXPECT_EQ(quick.value_or(""), exact.description);
    return exact.description;
  }
  void ExpectError(std::string_view json, base::StatusCode code, std::string_view message,
                   std::string_view binary = "") {
    const Outcome exact = Exactly(json, binary);
    ASSERT_FALSE(exact.status.ok()) << json;
    EXPECT_EQ(exact.status.message(), message) << json;
    EXPECT_EQ(exact.status.code(), code) << json;
    EXPECT_FALSE(Quickly(json, binary).has_value()) << json;
  }
  std::string Input(std::string_view type, std::string_view shape, std::string_view data) {
    return "{\"inputs\":[{\"name\":\"IN0\",\"shape\":" + std::string(shape) + ",\"datatype\":\"" +
           std::string(type) + "\",\"data\":" + std::string(data) + "}]}";
  }

  std::unique_ptr<core::Model> model_ = MakeModel({DataType::kFp32, DataType::kInt32});
  NoSink sink_;
  QuickReader quick_{kLimit};
};

constexpr auto kInvalid = base::StatusCode::kInvalidArgument;
constexpr auto kInternal = base::StatusCode::kInternal;

TEST_F(InferRequestTest, ReadsEveryTypeFromJson) {
  EXPECT_NE(Both(Input("FP32", "[2]", "[1.5,-2]")).find("0000c03f000000c0"), std::string::npos);
  EXPECT_NE(Both(Input("FP64", "[1]", "[0.30000000000000004]")).find("343333333333d33f"),
            std::string::npos);
  EXPECT_NE(Both(Input("BOOL", "[3]", "[true,false,true]")).find("010001"), std::string::npos);
  EXPECT_NE(Both(Input("INT64", "[1]", "[-9223372036854775808]")).find("0000000000000080"),
            std::string::npos);
  EXPECT_NE(Both(Input("UINT64", "[1]", "[18446744073709551615]")).find("ffffffffffffffff"),
            std::string::npos);
  // Numbers that do not fit wrap around, as they do in Triton.
  EXPECT_NE(Both(Input("UINT8", "[2]", "[300,255]")).find("2cff"), std::string::npos);
  EXPECT_NE(Both(Input("INT8", "[2]", "[-129,127]")).find("7f7f"), std::string::npos);
  EXPECT_NE(Both(Input("INT16", "[1]", "[-2]")).find("feff"), std::string::npos);
  EXPECT_NE(Both(Input("UINT16", "[1]", "[513]")).find("0102"), std::string::npos);
  EXPECT_NE(Both(Input("INT32", "[1]", "[1]")).find("01000000"), std::string::npos);
  EXPECT_NE(Both(Input("UINT32", "[1]", "[4294967295]")).find("ffffffff"), std::string::npos);
  EXPECT_NE(Both(Input("BYTES", "[3]", R"(["ab","","\u00e9\n"])"))
                .find("02000000616200000000"
                      "03000000c3a90a"),
            std::string::npos);
}

TEST_F(InferRequestTest, TakesDataFlatOrNestedAndInAnyMemberOrder) {
  const std::string flat = Both(Input("INT32", "[2,2]", "[1,2,3,4]"));
  EXPECT_EQ(Both(Input("INT32", "[2,2]", "[[1,2],[3,4]]")), flat);
  EXPECT_EQ(Both(Input("INT32", "[2,2]", "[1,[2,[3]],4]")), flat);
  EXPECT_EQ(
      Both(R"({"inputs":[{"data":[[1,2],[3,4]],"datatype":"INT32","name":"IN0","shape":[2,2]}]})"),
      flat);
  EXPECT_EQ(Both(R"( {"unknown":{"a":[1,{"b":null}],"c":"d"},"inputs":[{"data":[1,2,3,4],"x":[],
                     "shape":[2,2],"datatype":"INT32","name":"IN0"}]} )"),
            flat);
}

TEST_F(InferRequestTest, ReadsParametersAndOutputs) {
  EXPECT_EQ(Both(R"({"id":"r\u00e9","parameters":{"sequence_id":42,"sequence_start":true,
               "sequence_end":true,"priority":3,"timeout":7,"binary_data_output":true,"text":"v",
               "int":-1,"flag":false,"real":1.5,"big":18446744073709551615},"inputs":[],
               "outputs":[{"name":"OUT0","parameters":{"binary_data":true}},
                          {"name":"OUT1","parameters":{"classification":2}},{"name":"X"}]})"),
            "id=r\xC3\xA9 flags=3 prio=3 timeout=7 binary=1 sequence=42 text:0=v int:1=-1 flag:2=0 "
            "real:3=1.500000 "
            "big:3=18446744073709551616.000000"
            "\n-> OUT0 1 0\n-> OUT1 0 2\n-> X 0 0");
  EXPECT_NE(Both(R"({"parameters":{"sequence_id":"abc"},"inputs":[]})").find("'abc'"),
            std::string::npos);
}

TEST_F(InferRequestTest, TakesBinaryTensorsInOrder) {
  const std::string json =
      R"({"inputs":[{"name":"IN0","shape":[1],"datatype":"FP16","parameters":{"binary_data_size":2}},
          {"name":"Z","shape":[0],"datatype":"INT32","parameters":{"binary_data_size":0}},
          {"name":"J","shape":[1],"datatype":"INT8","data":[5]},
          {"name":"IN1","shape":[1],"datatype":"INT32","parameters":{"binary_data_size":4}}]})";
  EXPECT_EQ(Both(json, "abcdef"),
            "id= flags=0 prio=0 timeout=0 binary=0 sequence=0\nIN0 FP16 [1] 6162\nZ INT32 [0] "
            "\nJ INT8 [1] 05\nIN1 INT32 [1] 63646566");
  ExpectError(json, kInvalid,
              "unexpected size for input 'IN1', expecting 2 additional bytes for model 'm'",
              "abcd");
  ExpectError(json, kInvalid, "unexpected additional input data for model 'm'", "abcdefg");
}

TEST_F(InferRequestTest, LeavesBinaryTensorsWhereTheyAre) {
  const Body body(
      R"({"inputs":[{"name":"IN0","shape":[1],"datatype":"INT32","parameters":{"binary_data_size":4}}]})",
      "abcd");
  InferRequestReader reader(kLimit);
  core::RequestPtr request = NewRequest();
  ResponseOptions response_options;
  ASSERT_TRUE(reader.Read(body.body(), *request, response_options).ok());
  EXPECT_EQ(reinterpret_cast<const char*>(request->inputs[0].first.data), body.binary().data());
}

TEST_F(InferRequestTest, WordsErrorsAsTritonDoes) {
  const std::string prefix = "failed to parse the request JSON buffer: ";
  ExpectError("{", kInternal, prefix + "Missing a name for object member. at 1");
  ExpectError("{\"inputs\":[]} x", kInternal,
              prefix + "The document root must not be followed by other values. at 14");
  ExpectError("", kInternal, prefix + "The document is empty. at 0");
  ExpectError("{\"inputs\":[],\"x\":tru}", kInternal, prefix + "Invalid value. at 20");
  ExpectError("{}", kInternal,
              "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'");
  ExpectError("[]", kInternal,
              "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'");
  ExpectError(R"({"inputs":{}})", kInternal,
              "Unable to parse 'inputs': attempt to access JSON non-array as array");
  ExpectError(R"({"id":1,"inputs":[]})", kInternal,
              "Unable to parse 'id': attempt to access JSON non-string as string");
  ExpectError(R"({"parameters":[],"inputs":[]})", kInternal,
              "failed to get request params.: attempt to get members for non-object");
  ExpectError(R"({"parameters":{"triton_x":1},"inputs":[]})", kInvalid,
              "parameter keys starting with 'triton_' are reserved for Triton usage and should not "
              "be specified.");
  ExpectError(R"({"parameters":{"a":null},"inputs":[]})", kInvalid,
              "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.");
  ExpectError(R"({"parameters":{"priority":-1},"inputs":[]})", kInternal,
              "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as "
              "unsigned-integer");
  ExpectError(R"({"inputs":[{"name":"IN0"}]})", kInvalid,
              "Input must set only one of the following fields: 'data', 'binary_data_size' in "
              "'parameters', 'shared_memory_region' in 'parameters'. But no field is set");
  ExpectError(Input("INT32", "[-1]", "[1]"), kInternal,
              "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as "
              "unsigned-integer");
  ExpectError(Input("INT32", "[9223372036854775807,2]", "[1]"), kInvalid,
              "invalid shape for input 'IN0': shape [9223372036854775807,2] causes total element "
              "count to exceed maximum size of 9223372036854775807");
  ExpectError(Input("INT32", "[18446744073709551614]", "[1]"), kInvalid,
              "invalid shape for input 'IN0': shape [-2] contains one or more invalid dimensions");
  ExpectError(Input("INT32", "[9223372036854775807]", "[1]"), kInvalid,
              "byte size overflow for input 'IN0': element count (9223372036854775807) * data type "
              "size (4) exceeds maximum allowed size (9223372036854775807)");
  ExpectError(
      Input("INT32", "[1025]", "[1]"), kInvalid,
      "JSON input 'IN0' has a byte_size (4100 bytes) that exceeds the maximum allowed value "
      "of 4096 bytes. Use --http-max-input-size to increase the limit.");
  ExpectError(
      Input("INT32", "[2]", "[1]"), kInvalid,
      "Failed to parse 'data' field: shape does not match true shape (input 'IN0': its shape "
      "has 2 elements, 'data' has 1)");
  ExpectError(
      Input("INT32", "[2]", "[[1,2],[3]]"), kInvalid,
      "Unable to parse 'data': Shape does not match true shape of 'data' field (input 'IN0': "
      "its shape has 2 elements, 'data' has 3)");
  ExpectError(
      Input("INT32", "[1]", "[1.5]"), kInternal,
      "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer");
  ExpectError(Input("BOOL", "[1]", "[1]"), kInternal,
              "Unable to parse 'data': attempt to access JSON non-boolean as boolean");
  ExpectError(Input("FP32", "[1]", "[\"1\"]"), kInternal,
              "Unable to parse 'data': attempt to access JSON non-number as double");
  ExpectError(Input("BYTES", "[1]", "[1]"), kInternal,
              "Unable to parse JSON bytes array: attempt to access JSON non-string as string");
  ExpectError(
      Input("FP16", "[1]", "[1]"), kInvalid,
      "receiving FP16 data via JSON is not supported. Please use the binary data format for "
      "input IN0");
  ExpectError(
      Input("BF16", "[1]", "[1]"), kInvalid,
      "receiving BF16 data via JSON is not supported. Please use the binary data format for "
      "input IN0");
  ExpectError(Input("FOO", "[1]", "[1]"), kInvalid, "invalid datatype for input IN0");
  ExpectError(R"({"inputs":[{"name":"A","shape":[0],"datatype":"INT8","data":[]},
                            {"name":"A","shape":[0],"datatype":"INT8","data":[]}]})",
              kInvalid, "[request id: <id_unknown>] input 'A' already exists in request");
  ExpectError(R"({"id":"7","inputs":[],"outputs":[{"name":"A"},{"name":"A"}]})", kInvalid,
              "[request id: 7] output 'A' already exists in request");
  ExpectError(R"({"inputs":[],"outputs":[{"name":"A","parameters":{"shared_memory_region":"r",
                 "classification":1}}]})",
              kInvalid, "Output can't set both 'shared_memory_region' and 'classification'");
}

TEST_F(InferRequestTest, LimitsTheDepthOfData) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  Both(Input("INT32", "[1]", nested(99)));
  EXPECT_TRUE(Exactly(Input("INT32", "[1]", nested(99))).status.ok());
  ExpectError(Input("INT32", "[1]", nested(100)), kInvalid,
              "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)");
  ExpectError(Input("INT32", "[1]", nested(1200)), kInvalid,
              "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)");
}

TEST_F(InferRequestTest, TakesNanAndInfinity) {
  const Outcome outcome = Exactly(Input("FP32", "[3]", "[NaN,Infinity,-Inf]"));
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_NE(outcome.description.find("0000807f000080ff"), std::string::npos);
}

TEST_F(InferRequestTest, TakesTheFirstOfMembersWithOneName) {
  const Outcome outcome = Exactly(R"({"id":"a","id":"b","inputs":[]})");
  EXPECT_TRUE(outcome.description.starts_with("id=a "));
  EXPECT_FALSE(Quickly(R"({"id":"a","id":"b","inputs":[]})").has_value());
  EXPECT_FALSE(Quickly("{\"i\\u0064\":\"a\",\"inputs\":[]}").has_value());
}

TEST_F(InferRequestTest, DeducesTheShapeOfRawRequests) {
  const auto raw = [&](core::Model& model, std::string_view bytes) {
    core::RequestPtr request = core::Request::Create(sink_);
    request->model = Pin(model);
    ResponseOptions response_options;
    Outcome outcome;
    outcome.status = infer_internal::ReadRaw(bytes, kLimit, *request, response_options);
    if (outcome.status.ok()) outcome.description = Describe(*request, response_options);
    return outcome;
  };
  const auto single = MakeModel({DataType::kInt16}, 4);
  EXPECT_TRUE(raw(*single, "abcdef").description.ends_with("IN0 INT16 [1,3] 616263646566"));
  EXPECT_NE(raw(*single, "ab").description.find("binary=1"), std::string::npos);
  EXPECT_EQ(raw(*model_, "abcd").status.message(),
            "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced "
            "but got 2 inputs in 'm' model configuration");
  const auto text = MakeModel({DataType::kBytes});
  EXPECT_EQ(raw(*text, "abcd").status.message(),
            "[request id: <id_unknown>] For BYTE datatype raw input 'IN0', the model must have "
            "input shape [1]");
  EXPECT_TRUE(raw(*single, std::string(kLimit + 1, 'x'))
                  .status.message()
                  .starts_with("Raw input has a byte_size (4097 bytes) that exceeds"));
}

// Random damage to valid heads: the readers must agree, and neither may read beyond its input
// (checked by AddressSanitizer).
TEST_F(InferRequestTest, SurvivesMutationsAndAgrees) {
  const std::vector<std::pair<std::string, std::string>> seeds = {
      {R"({"id":"x","parameters":{"sequence_id":1,"priority":2,"a":"b"},"inputs":[{"name":"IN0","shape":[2,2],"datatype":"FP32","data":[[1.5,2],[3e2,-4]]}],"outputs":[{"name":"OUT0","parameters":{"binary_data":true}}]})",
       ""},
      {R"({"inputs":[{"name":"IN0","shape":[2],"datatype":"BYTES","data":["a\u00e9","b"]},{"name":"IN1","shape":[1],"datatype":"INT32","parameters":{"binary_data_size":4}}]})",
       "wxyz"},
      {R"({"inputs":[{"data":[true,false],"datatype":"BOOL","shape":[2],"name":"IN0","x":null}],"y":[1,{"z":"w"}]})",
       ""}};
  static constexpr std::string_view kTokens[] = {
      "\"",   "[",       "]",   "{",   "}",
      ",",    ":",       "-",   "1e5", "null",
      "true", "\\u00e9", "NaN", "\\",  "99999999999999999999",
      " ",    "0"};
  std::mt19937 random(20260101);
  for (int round = 0; round < 30'000; ++round) {
    auto [json, binary] = seeds[random() % std::size(seeds)];
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % (json.size() + 1);
      switch (random() % 5) {
        case 0:
          json = json.substr(0, at);
          break;
        case 1:
          json.insert(at, kTokens[random() % std::size(kTokens)]);
          break;
        case 2:
          if (at < json.size()) json[at] = static_cast<char>(random());
          break;
        case 3:
          json.erase(at, 1 + random() % 8);
          break;
        default:
          json.insert(at, json.substr(random() % (json.size() + 1), random() % 20));
      }
    }
    const auto quick = Quickly(json, binary);
    const Outcome exact = Exactly(json, binary);
    if (!quick) continue;
    ASSERT_TRUE(exact.status.ok()) << exact.status.message() << "\n" << json;
    ASSERT_EQ(*quick, exact.description) << json;
  }
}

TEST_F(InferRequestTest, ReadsWhatClientsUsuallySend) {
  const std::string binary(20, '\1');
  for (
      const std::string_view json : {
          R"({"inputs":[{"name":"A","shape":[1,4],"datatype":"FP32","parameters":{"binary_data_size":16}},)"
          R"({"name":"B","shape":[],"datatype":"INT32","parameters":{"binary_data_size":4}}],)"
          R"("parameters":{"binary_data_output":true}})",
          R"({"id": "7", "inputs": [{"name": "A", "shape": [5], "datatype": "INT32", "parameters": )"
          R"({"binary_data_size": 20}}], "outputs": [{"name": "C", "parameters": {"binary_data": true}}, )"
          R"({"name": "D"}], "parameters": {"sequence_id": 9, "sequence_start": true, "sequence_end": false}})",
      }) {
    Both(json, binary);
  }
}

TEST_F(InferRequestTest, ReadsHeadsOfBinaryTensorsThatAreEditedAtRandom) {
  constexpr std::string_view kHead =
      R"({"id":"7","inputs":[{"name":"A","shape":[2],"datatype":"INT32","parameters":{"binary_data_size":8}}],)"
      R"("outputs":[{"name":"C","parameters":{"binary_data":true}}],"parameters":{"binary_data_output":true}})";
  constexpr std::string_view kTokens[] = {"\"", ",", ":", "0", "-", "1e2",
                                          "{",  "}", "[", "]", " ", "\\"};
  const std::string binary(8, '\1');
  std::minstd_rand random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string json(kHead);
    const size_t at = random() % json.size();
    switch (random() % 3) {
      case 0:
        json.insert(at, kTokens[random() % std::size(kTokens)]);
        break;
      case 1:
        json[at] = static_cast<char>(random());
        break;
      default:
        json.erase(at, 1 + random() % 3);
    }
    const auto quick = Quickly(json, binary);
    if (!quick) continue;
    const Outcome exact = Exactly(json, binary);
    ASSERT_TRUE(exact.status.ok()) << exact.status.message() << "\n" << json;
    ASSERT_EQ(*quick, exact.description) << json;
  }
}

TEST_F(InferRequestTest, ReadsAZeroWithoutAPointAsTheIntegerThatItIs) {
  EXPECT_TRUE(Both(Input("FP32", "[3]", "[-0,-0.0,0]")).ends_with("000000000000008000000000"));
}

TEST_F(InferRequestTest, ReadsEscapesWhereverTextMayStand) {
  EXPECT_EQ(Both(R"({"id":"\\","parameters":{"sequence_id":"\u0041","text":"\"q\""},"inputs":[
               {"name":"\u0049N0","shape":[1],"datatype":"\u0049NT8","data":[1]}],
               "outputs":[{"name":"\u00e9"}]})"),
            "id=\\ flags=0 prio=0 timeout=0 binary=0 sequence='A' text:0=\"q\"\nIN0 INT8 [1] 01"
            "\n-> \xC3\xA9 0 0");
}

TEST_F(InferRequestTest, EndsNamesAtAZeroByte) {
  const Outcome outcome = Exactly(
      R"({"id":"a\u0000b","parameters":{"sequence_id":"s\u0000t","timeout":2},
          "inputs":[{"name":"IN0\u0000x","shape":[1],"datatype":"INT8\u0000","data":[1]}]})");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.description,
            "id=a flags=0 prio=0 timeout=2 binary=0 sequence='s'\nIN0 INT8 [1] 01");
}

TEST_F(InferRequestTest, BoundsTheNumberOfParametersInBothReaders) {
  const auto with_parameters = [](size_t count) {
    std::string json = R"({"inputs":[],"parameters":{"priority":1)";
    for (size_t i = 1; i < count; ++i) json += ",\"p" + std::to_string(i) + "\":1";
    return json + "}}";
  };
  Both(with_parameters(1024));
  ExpectError(with_parameters(1025), kInvalid, "a request may have at most 1024 parameters");
}

TEST_F(InferRequestTest, TakesMoreTensorsThanAreSearchedForTheirNames) {
  std::string inputs;
  std::string outputs;
  for (int i = 0; i < 100; ++i) {
    const std::string name = (i == 0 ? "" : ",") + std::string(R"({"name":"T)") + std::to_string(i);
    inputs += name + R"(","shape":[1],"datatype":"INT8","data":[1]})";
    outputs += name + R"("})";
  }
  Both(R"({"inputs":[)" + inputs + R"(],"outputs":[)" + outputs + "]}");
}

TEST_F(InferRequestTest, TakesShapesOfHighRank) {
  EXPECT_TRUE(Exactly(Input("INT8", "[1,1,1,1,1,1,1,1,1,1]", "[5]")).status.ok());
  Both(Input("INT8", "[1,1,1,1,1,1,1,1]", "[5]"));
}

TEST_F(InferRequestTest, LeavesTensorsInUnknownSharedMemoryToTheExactReader) {
  ExpectError(
      R"({"inputs":[{"name":"IN0","shape":[1],"datatype":"INT8","parameters":{
          "shared_memory_region":"r","shared_memory_byte_size":1}}]})",
      base::StatusCode::kNotFound, "Unable to find shared memory region: 'r'");
  ExpectError(
      R"({"inputs":[],"outputs":[{"name":"A","parameters":{"shared_memory_region":"r",
          "binary_data":true}}]})",
      kInvalid, "Output can't set both 'shared_memory_region' and 'binary_data'");
}

}  // namespace
}  // namespace nereid::http
