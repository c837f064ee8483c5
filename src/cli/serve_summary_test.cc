// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include "cli/testing/file_test.h"

namespace nereid::cli {
namespace {

using tensor::DataType;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

ModelSummary Summary(std::string name, int32_t max_batch_size = 0) {
  ModelSummary model{.name = std::move(name),
                     .source = "/models/net.onnx",
                     .framework = "ONNX",
                     .is_file = true,
                     .failure = {},
                     .config = {},
                     .call = {},
                     .call_failure = {}};
  model.config.name = model.name;
  model.config.max_batch_size = max_batch_size;
  model.config.input = {{.name = "x", .data_type = DataType::kFp32, .dims = {-1, 3}}};
  model.config.output = {{.name = "scores", .data_type = DataType::kInt64, .dims = {1}}};
  if (max_batch_size > 0) model.config.scheduling_choice = config::DynamicBatching();
  model.call = MakeSampleCall(model.config);
  return model;
}

const ServerAddresses kAddresses = {
    .http = "localhost:8000", .grpc = "localhost:8001", .metrics = "localhost:8002"};

std::string Text(const std::vector<ModelSummary>& models) {
  return SummaryText(models, kAddresses, [](std::string_view text) { return std::string(text); });
}

TEST(SummaryText, ListsTensorsWithTheBatchAsFirstDimension) {
  EXPECT_THAT(Text({Summary("net", 4)}), HasSubstr("net  ONNX, /models/net.onnx\n"
                                                   "  input   x       FP32    [-1, -1, 3]\n"
                                                   "  output  scores  INT64   [-1, 1]\n"
                                                   "  batched: up to 4 rows"));
}

TEST(SummaryText, SaysHowToBatchAFileWhoseFirstDimensionsAreFree) {
  EXPECT_THAT(Text({Summary("net")}), HasSubstr("not batched"));
  EXPECT_THAT(Text({Summary("net")}), HasSubstr("--max-batch-size 8"));
  ModelSummary fixed = Summary("net");
  fixed.config.input[0].dims = {2, 3};
  EXPECT_THAT(Text({fixed}), Not(HasSubstr("--max-batch-size")));
  ModelSummary python = Summary("net");
  python.config.backend = "python";
  EXPECT_THAT(Text({python}), Not(HasSubstr("--max-batch-size")));
}

TEST(SummaryText, SaysWhyAModelOrACallDoesNotWork) {
  ModelSummary failed = Summary("net");
  failed.failure = "it is broken";
  EXPECT_THAT(Text({failed}), HasSubstr("cannot be served: it is broken"));
  EXPECT_THAT(Text({failed}), Not(HasSubstr("curl")));
  ModelSummary odd = Summary("net");
  odd.call_failure = "too small";
  EXPECT_THAT(Text({odd}), HasSubstr("need other shapes, or other values than zeros: too small"));
}

TEST(SummaryText, AsksForInputsThatNothingTellsInPlaceOfACall) {
  ModelSummary model = Summary("net");
  model.config.backend = "python";
  model.config.input.clear();
  EXPECT_THAT(Text({model}), HasSubstr("--input NAME:TYPE:DIMS"));
  EXPECT_THAT(Text({model}), Not(HasSubstr("curl")));
  EXPECT_THAT(SummaryJson({model}, kAddresses), HasSubstr("\"call_error\":\"the model does not"));
  EXPECT_THAT(SummaryJson({model}, kAddresses), Not(HasSubstr("curl")));
  model.is_file = false;
  EXPECT_THAT(Text({model}), HasSubstr("in its config.pbtxt"));
}

TEST(SummaryText, HasOneProgramForManyModels) {
  std::vector<ModelSummary> models;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) models.push_back(Summary(name));
  const std::string text = Text(models);
  EXPECT_THAT(text, HasSubstr("client.infer(\"a\""));
  EXPECT_THAT(text, Not(HasSubstr("client.infer(\"b\"")));
  EXPECT_THAT(text, HasSubstr("/v2/models/f/infer"));
}

TEST(SummaryJson, HasEverythingThatTheTextHas) {
  ModelSummary failed = Summary("bad");
  failed.failure = "it's \"broken\"";
  rapidjson::Document json;
  json.Parse(SummaryJson({Summary("net", 4), failed}, kAddresses).c_str());
  ASSERT_FALSE(json.HasParseError());
  EXPECT_STREQ(json["grpc"].GetString(), "localhost:8001");
  const rapidjson::Value& net = json["models"][0];
  EXPECT_TRUE(net["ready"].GetBool());
  EXPECT_EQ(net["inputs"][0]["shape"].Size(), 3u);
  EXPECT_THAT(net["curl"].GetString(), HasSubstr("curl -s localhost:8000"));
  EXPECT_THAT(net["python"].GetString(), HasSubstr("import tritonclient"));
  EXPECT_STREQ(json["models"][1]["error"].GetString(), "it's \"broken\"");
}

TEST(AddressesFor, AreThoseThatAClientOnThisMachineCanUse) {
  const ServerPorts ports{.http = 8000, .grpc = 0, .metrics = 8002};
  EXPECT_EQ(AddressesFor("0.0.0.0", ports).http, "localhost:8000");
  EXPECT_EQ(AddressesFor("0.0.0.0", ports).grpc, std::nullopt);
  EXPECT_EQ(AddressesFor("10.0.0.7", ports).metrics, "10.0.0.7:8002");
  EXPECT_EQ(AddressesFor("fe80::1", ports).http, "[fe80::1]:8000");
}

class DescribeFailureTest : public FileTest {
 protected:
  std::string Describe(const std::string& file, const std::string& reason,
                       const ModelSettings& settings = {}) {
    Write(file);
    const auto served = ServedModels::Create({*RecognizeModelFile(Path(file))}, settings);
    return DescribeFailure(**served, "net", reason);
  }
};

TEST_F(DescribeFailureTest, SaysHowToGetAMissingFramework) {
  const std::string reason = "Invalid argument: unable to find backend library for backend 'x'";
  EXPECT_THAT(Describe("net.pt", reason), HasSubstr("pip install 'nereid[pytorch]'"));
  EXPECT_THAT(Describe("net.plan", reason), HasSubstr("needs the backend 'tensorrt'"));
  const std::string loader =
      "unable to load shared library: libtorch_cpu.so: cannot open shared object file: No such "
      "file";
  const std::string text = Describe("net.pt", loader);
  EXPECT_THAT(text, HasSubstr("pip install 'nereid[pytorch]'"));
  EXPECT_THAT(text, HasSubstr("The backend says: " + loader));
  EXPECT_THAT(text, Not(HasSubstr("--input")));
}

TEST_F(DescribeFailureTest, SaysHowToNameInputsUnlessTheyAreNamed) {
  EXPECT_THAT(Describe("net.pt", "why"), HasSubstr("--input NAME:TYPE:DIMS"));
  EXPECT_THAT(Describe("net.pb", "why"), HasSubstr("and --output likewise"));
  EXPECT_THAT(Describe("net.pt", "why"), EndsWith("The backend says: why"));
  EXPECT_EQ(Describe("net.pt", "why", {.inputs = {*ParseTensor("x:FP32:1")}}), "why");
  EXPECT_EQ(Describe("net.onnx", "why\n"), "why");
}

}  // namespace
}  // namespace nereid::cli
