// SPDX-License-Identifier: Apache-2.0
#include "config/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace nereid::config {
namespace {

using testing::HasSubstr;

std::string FaultsOf(std::string_view text) {
  const auto config = ParseModelConfigText(text, "m/config.pbtxt");
  return config.ok() ? "no fault" : std::string(config.status().message());
}

TEST(ConfigText, ReadsEveryDataType) {
  using tensor::DataType;
  const std::pair<const char*, DataType> types[] = {
      {"TYPE_BOOL", DataType::kBool},     {"TYPE_UINT8", DataType::kUint8},
      {"TYPE_UINT16", DataType::kUint16}, {"TYPE_UINT32", DataType::kUint32},
      {"TYPE_UINT64", DataType::kUint64}, {"TYPE_INT8", DataType::kInt8},
      {"TYPE_INT16", DataType::kInt16},   {"TYPE_INT32", DataType::kInt32},
      {"TYPE_INT64", DataType::kInt64},   {"TYPE_FP16", DataType::kFp16},
      {"TYPE_FP32", DataType::kFp32},     {"TYPE_FP64", DataType::kFp64},
      {"TYPE_STRING", DataType::kBytes},  {"TYPE_BF16", DataType::kBf16}};
  for (const auto& [name, type] : types) {
    const auto config =
        ParseModelConfigText(std::string("input [ { data_type: ") + name + " } ]", "t");
    ASSERT_TRUE(config.ok()) << name;
    EXPECT_EQ(config->input[0].data_type, type) << name;
    EXPECT_EQ(tensor::ConfigName(config->input[0].data_type), name);
  }
}

TEST(ConfigText, AcceptsTheWaysPeopleWriteIt) {
  const auto config = ParseModelConfigText(
      "# comment\nname: 'a' \"b\"; max_batch_size: 0x10, input < name: \"x\" dims: 1 dims: [2,-1] "
      ">\n"
      "input { name: \"y\", dims: [] }\nparameters [ { key: \"k\" value: { string_value: \"v\" } } "
      "]\n"
      "model_transaction_policy: { decoupled: True }",
      "t");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->name, "ab");
  EXPECT_EQ(config->max_batch_size, 16);
  EXPECT_EQ(config->input[0].dims, (std::vector<int64_t>{1, 2, -1}));
  EXPECT_EQ(config->input[1].name, "y");
  EXPECT_EQ(config->parameters.at("k"), "v");
  EXPECT_TRUE(config->is_decoupled());
}

TEST(ConfigText, NamesTheFileInTheFirstLineAsClientsKnowIt) {
  EXPECT_THAT(FaultsOf("max_batch_size: \"a\""),
              testing::StartsWith("failed to read text proto from m/config.pbtxt\n"));
}

TEST(ConfigText, ReportsEveryFaultWithPlaceFieldFoundAndExpected) {
  EXPECT_EQ(
      FaultsOf("name: 3\n"
               "max_batch_size: \"four\"\n"
               "inputs [ { name: \"x\" } ]\n"
               "input [\n"
               "  { name: \"a\" data_type: TYPE_FLOAT dims: [ 1, x, 3 ] },\n"
               "  { nam: \"b\" optional: maybe }\n"
               "]\n"
               "dynamic_batching { max_queue_delay_microseconds: -1 }\n"
               "dynamic_batching { }\n"
               "instance_group { kind: KIND_TPU count: 99999999999 }\n"),
      "failed to read text proto from m/config.pbtxt\n"
      "  m/config.pbtxt:1:7: name: found 3, expected a string in quotes\n"
      "  m/config.pbtxt:2:17: max_batch_size: found \"four\", expected a 32-bit integer\n"
      "  m/config.pbtxt:3:1: found inputs, expected a field of ModelConfig, perhaps 'input'\n"
      "  m/config.pbtxt:5:26: input[0].data_type: found TYPE_FLOAT, expected one of "
      "TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, "
      "TYPE_INT16, TYPE_INT32, TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_STRING, "
      "TYPE_BF16, perhaps 'TYPE_FP32'\n"
      "  m/config.pbtxt:5:48: input[0].dims[1]: found x, expected a 64-bit integer\n"
      "  m/config.pbtxt:6:5: input[1]: found nam, expected a field of ModelInput, perhaps "
      "'name'\n"
      "  m/config.pbtxt:6:24: input[1].optional: found maybe, expected true or false\n"
      "  m/config.pbtxt:8:50: dynamic_batching.max_queue_delay_microseconds: found -, expected "
      "a 64-bit integer >= 0\n"
      "  m/config.pbtxt:9:1: dynamic_batching: found dynamic_batching, expected this field only "
      "once\n"
      "  m/config.pbtxt:10:24: instance_group[0].kind: found KIND_TPU, expected one of "
      "KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL, perhaps 'KIND_GPU'\n"
      "  m/config.pbtxt:10:40: instance_group[0].count: found 99999999999, expected a 32-bit "
      "integer");
}

TEST(ConfigText, SuggestsDataTypesForTheirOtherNames) {
  const auto type = [](const char* name) {
    return FaultsOf(std::string("input { data_type: ") + name + " }");
  };
  EXPECT_THAT(type("FP32"), HasSubstr(", perhaps 'TYPE_FP32'"));
  EXPECT_THAT(type("int64"), HasSubstr(", perhaps 'TYPE_INT64'"));
  EXPECT_THAT(type("TYPE_FLOAT32"), HasSubstr(", perhaps 'TYPE_FP32'"));
  EXPECT_THAT(type("float16"), HasSubstr(", perhaps 'TYPE_FP16'"));
  EXPECT_THAT(type("TYPE_BYTES"), HasSubstr(", perhaps 'TYPE_STRING'"));
  EXPECT_THAT(type("\"TYPE_FP32\""), HasSubstr(", perhaps 'TYPE_FP32' without quotes"));
  EXPECT_THAT(type("COMPLEX"), testing::Not(HasSubstr("perhaps")));
  EXPECT_THAT(FaultsOf("instance_group { kind: CPU }"), HasSubstr(", perhaps 'KIND_CPU'"));
}

TEST(ConfigText, RecognisesJson) {
  EXPECT_THAT(
      FaultsOf("{\"name\": \"m\"}"),
      HasSubstr("1:1: found {, expected a field name: this file has protobuf's text format, "
                "not JSON"));
}

// Protobuf's message does not distinguish zero from an absent field.
TEST(ConfigText, RecordsWhetherMaxBatchSizeIsWritten) {
  const auto text = [](std::string_view pbtxt) {
    return ParseModelConfigText(pbtxt, "f")->gives_max_batch_size;
  };
  EXPECT_TRUE(text("max_batch_size: 0"));
  EXPECT_TRUE(text("name: 'm' max_batch_size: 8"));
  EXPECT_FALSE(text(""));
  EXPECT_FALSE(text("name: 'max_batch_size: 0'  # max_batch_size: 0"));
  EXPECT_FALSE(text("model_warmup [{ name: 'w' batch_size: 0 }]"));
  const auto json = [](std::string_view form) {
    return ParseModelConfigJson(form)->gives_max_batch_size;
  };
  EXPECT_TRUE(json(R"({"max_batch_size":0})"));
  EXPECT_TRUE(json(R"({"maxBatchSize":"0"})"));
  EXPECT_TRUE(json(R"({"max_batch_size":8})"));
  EXPECT_FALSE(json("{}"));
  EXPECT_FALSE(json(R"({"max_batch_size":null})"));
  EXPECT_FALSE(json(R"({"parameters":{"max_batch_size":{"string_value":"0"}}})"));
}

TEST(ConfigText, ExplainsRivalFieldsAndBrokenBrackets) {
  EXPECT_THAT(FaultsOf("dynamic_batching { } sequence_batching { }"),
              HasSubstr("1:22: sequence_batching: found sequence_batching, expected only one of "
                        "'dynamic_batching' and 'sequence_batching'"));
  EXPECT_THAT(FaultsOf("input [ { name: \"a\" "), HasSubstr("found the end of the file"));
  EXPECT_THAT(FaultsOf("input { name: \"a\" ]"), HasSubstr("found ], expected a field name"));
  for (const char* end : {">", "}", "]"}) {
    EXPECT_THAT(FaultsOf(std::string("input { dims: [ 1 x ") + end + " }"), HasSubstr("found x"));
    EXPECT_THAT(FaultsOf(std::string("input [ 3 ") + end), HasSubstr("expected '{'"));
    EXPECT_THAT(FaultsOf(std::string("name: ") + end), HasSubstr("expected a string in quotes"));
  }
  EXPECT_THAT(FaultsOf("name \"a\""), HasSubstr("1:6: name: found \"a\", expected ':'"));
  EXPECT_THAT(FaultsOf("name: \"a"), HasSubstr("expected"));
  EXPECT_THAT(FaultsOf("\x01\x02"), HasSubstr("1:"));
  EXPECT_THAT(FaultsOf("}}}}"), HasSubstr("1:1: found }, expected a field name"));
}

TEST(ConfigText, SurvivesDeepNestingAndAMillionBrackets) {
  for (const char* piece : {"input {", "input [", "[", "{", "x {", "x: [", "input: <"}) {
    std::string text;
    while (text.size() < 500'000) text += piece;
    EXPECT_THAT(FaultsOf(text), HasSubstr("expected")) << piece;
  }
}

TEST(ConfigText, StopsAfterAHundredFaults) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "wrong: 1\n";
  const std::string faults = FaultsOf(text);
  EXPECT_EQ(std::count(faults.begin(), faults.end(), '\n'), 100);
}

// Every prefix of a valid file, and the file with each byte replaced, is either accepted or refused
// with an explanation.
TEST(ConfigText, ExplainsWhateverItRefuses) {
  const std::string text =
      "name: \"m\" input [ { name: \"a\" dims: [ 1, -2 ] } ] parameters { key: \"k\" value { "
      "string_value: 'v' } } sequence_batching { direct { minimum_slot_utilization: .5f } }";
  for (size_t i = 0; i <= text.size(); ++i) {
    std::vector<std::string> variants = {text.substr(0, i)};
    for (const char byte : {'{', '}', '[', ']', '"', ' ', '-', 'x', '\0', '\xff', '\n', '<'}) {
      if (i == text.size()) break;
      variants.push_back(text);
      variants.back()[i] = byte;
    }
    for (const std::string& variant : variants) {
      const std::string faults = FaultsOf(variant);
      if (faults == "no fault") continue;
      EXPECT_THAT(faults, HasSubstr("\n  m/config.pbtxt:")) << variant;
    }
  }
}

TEST(ConfigText, RefusesStringsThatAreNotUtf8) {
  EXPECT_EQ(FaultsOf("input { } input { name: '\\xff' }"),
            "failed to read text proto from m/config.pbtxt\n"
            "  m/config.pbtxt: input[1].name: found bytes that are not UTF-8, expected UTF-8 text");
  for (const char* bad : {"\\xc0\\x80", "\\xed\\xa0\\x80", "\\xf4\\x90\\x80\\x80", "\\xe2\\x82",
                          "\\xe0\\x9f\\xbf", "\\xf0\\x8f\\xbf\\xbf", "\\x80"}) {
    EXPECT_THAT(FaultsOf(std::string("metric_tags { key: 'k' value: '") + bad + "' }"),
                HasSubstr("not UTF-8"))
        << bad;
  }
  EXPECT_EQ(FaultsOf("name: 'gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80'"), "no fault");
}

TEST(ConfigJsonText, ReadsNumbersStringsAndEnumeratorsInAnyCase) {
  const auto config = ParseModelConfigJson(
      R"({"name":"m","maxBatchSize":4,"input":[{"name":"a","data_type":"type_fp32","dims":[-1,"3"]}]})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->max_batch_size, 4);
  EXPECT_EQ(config->input[0].data_type, tensor::DataType::kFp32);
  EXPECT_EQ(config->input[0].dims, (std::vector<int64_t>{-1, 3}));
}

TEST(ConfigJsonText, RefusesWhatIsNoConfiguration) {
  for (const char* json : {"", "{", "[]", "3", "{\"nam\":1}", "{\"max_batch_size\":\"x\"}",
                           "{\"input\":[{\"data_type\":\"TYPE_FLOAT\"}]}"}) {
    const auto config = ParseModelConfigJson(json);
    ASSERT_FALSE(config.ok()) << json;
    EXPECT_EQ(config.status().code(), base::StatusCode::kInvalidArgument) << json;
  }
}

TEST(ConfigJsonText, SurvivesDeepNesting) {
  for (const char* piece : {"[", "{\"input\":[", "{\"parameters\":{\"a\":"}) {
    std::string json;
    while (json.size() < 300'000) json += piece;
    EXPECT_FALSE(ParseModelConfigJson(json).ok()) << piece;
  }
}

TEST(ConfigProto, RefusesTruncatedBytes) {
  EXPECT_FALSE(ParseModelConfigProto("\x0a\x7f").ok());
  EXPECT_TRUE(ParseModelConfigProto("").ok());
}

}  // namespace
}  // namespace nereid::config
