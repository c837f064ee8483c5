// SPDX-License-Identifier: Apache-2.0
#include "cli/sample_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/testing/fake_service.h"

namespace nereid::cli {
namespace {

using config::ModelConfig;
using tensor::DataType;
using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig Config(std::vector<config::ModelInput> inputs, int32_t max_batch_size = 0) {
  return {.name = "m",
          .max_batch_size = max_batch_size,
          .input = std::move(inputs),
          .output = {{.name = "y", .data_type = DataType::kFp32, .dims = {1}}}};
}

const ServerAddresses kBoth = {.http = "localhost:8000", .grpc = "localhost:8001", .metrics = {}};

std::string Curl(const ModelConfig& config) { return *CurlCommand(MakeSampleCall(config), kBoth); }
std::string Python(const ModelConfig& config) {
  return *PythonProgram(MakeSampleCall(config), kBoth);
}

TEST(SampleCall, HasOneRowAndTheGivenSizeElsewhere) {
  const config::ModelInput input{.name = "x", .data_type = DataType::kFp32, .dims = {-1, 3, -1}};
  EXPECT_THAT(MakeSampleCall(Config({input}), 8).inputs[0].shape, ElementsAre(1, 3, 8));
  EXPECT_THAT(MakeSampleCall(Config({input}, 4), 8).inputs[0].shape, ElementsAre(1, 8, 3, 8));
  EXPECT_TRUE(HasFreeSizes(Config({input})));
  EXPECT_FALSE(HasFreeSizes(Config({{.name = "x", .dims = {-1, 3}}})));
}

TEST(SampleCall, LeavesOutOptionalInputsUnlessThereAreNoOthers) {
  const config::ModelInput needed{.name = "a", .dims = {1}};
  const config::ModelInput optional{.name = "b", .dims = {1}, .optional = true};
  EXPECT_EQ(MakeSampleCall(Config({optional, needed})).inputs.size(), 1u);
  EXPECT_EQ(MakeSampleCall(Config({optional})).inputs.size(), 1u);
}

TEST(CurlCommand, HasShortInputsAsJson) {
  EXPECT_EQ(Curl(Config({{.name = "it's", .data_type = DataType::kBytes, .dims = {2}}})),
            "curl -s localhost:8000/v2/models/m/infer -d "
            R"('{"inputs":[{"name":"it'\''s","datatype":"BYTES","shape":[2],"data":["1","1"]}]}')");
}

TEST(CurlCommand, HasLongInputsAsBytes) {
  const std::string json =
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[3,224,224],"parameters":{"binary_data_size":602112}}]})";
  EXPECT_EQ(Curl(Config({{.name = "x", .data_type = DataType::kFp32, .dims = {3, 224, 224}}})),
            "{ printf %s '" + json + "'; head -c 602112 /dev/zero; } |\n" +
                "  curl -s localhost:8000/v2/models/m/infer -H 'Inference-Header-Content-Length: " +
                std::to_string(json.size()) + "' --data-binary @-");
}

TEST(CurlCommand, SendsAndAsksForBytesWhereJsonHasNoNumbers) {
  ModelConfig config = Config({{.name = "x", .data_type = DataType::kFp16, .dims = {2}}});
  config.output[0].data_type = DataType::kBf16;
  EXPECT_THAT(Curl(config), HasSubstr(R"("binary_data_size":4)"));
  EXPECT_THAT(Curl(config),
              HasSubstr(R"("outputs":[{"name":"y","parameters":{"binary_data":true}}])"));
  EXPECT_THAT(Curl(config), HasSubstr("| od -c"));
}

TEST(CurlCommand, BeginsAndEndsASequence) {
  ModelConfig config = Config({{.name = "x", .data_type = DataType::kInt32, .dims = {1}}});
  config.scheduling_choice = config::SequenceBatching();
  EXPECT_THAT(Curl(config), HasSubstr(R"("sequence_id":1,"sequence_start":true)"));
  EXPECT_THAT(Python(config), HasSubstr("sequence_id=1, sequence_start=True, sequence_end=True"));
}

TEST(CurlCommand, StreamsTheResponsesOfADecoupledModel) {
  ModelConfig config = Config({{.name = "x", .data_type = DataType::kInt32, .dims = {2}}});
  config.decoupled = true;
  EXPECT_EQ(Curl(config), "curl -sN localhost:8000/v2/models/m/generate_stream -d '{\"x\":[0,0]}'");
  EXPECT_THAT(Python(config), HasSubstr("client.start_stream"));
  EXPECT_EQ(
      PythonProgram(MakeSampleCall(config), {.http = "localhost:8000", .grpc = {}, .metrics = {}}),
      std::nullopt);
}

TEST(PythonProgram, ClosesItsClientAlsoAfterAnError) {
  ModelConfig config = Config({{.name = "x", .data_type = DataType::kInt32, .dims = {2}}});
  EXPECT_THAT(Python(config), HasSubstr("with triton.InferenceServerClient("));
  config.decoupled = true;
  EXPECT_THAT(Python(config), HasSubstr("with triton.InferenceServerClient("));
}

TEST(CurlCommand, EscapesTheNameOfTheModel) {
  ModelConfig config = Config({});
  config.name = "a b";
  EXPECT_THAT(Curl(config), HasSubstr("/v2/models/a%20b/infer"));
}

TEST(Calls, NeedAProtocolThatIsOn) {
  const SampleCall call = MakeSampleCall(Config({}));
  EXPECT_EQ(CurlCommand(call, {}), std::nullopt);
  EXPECT_EQ(PythonProgram(call, {}), std::nullopt);
  EXPECT_THAT(*PythonProgram(call, {.http = {}, .grpc = "localhost:8001", .metrics = {}}),
              HasSubstr("import tritonclient.grpc as triton"));
}

TEST(Try, SendsZerosAndReturnsTheErrorOfTheModel) {
  service::FakeService service(service::MakeModel({DataType::kFp32, DataType::kBytes}));
  const SampleCall call{.model = "m",
                        .inputs = {{.name = "IN0", .type = DataType::kFp32, .shape = {2}},
                                   {.name = "IN1", .type = DataType::kBytes, .shape = {1}}},
                        .outputs = {}};
  std::vector<size_t> sizes;
  service.on_infer = [&](core::RequestPtr request) {
    for (const core::RequestInput& input : request->inputs) sizes.push_back(input.byte_size);
    EXPECT_FALSE(request->is_counted);
    core::CompleteWithError(std::move(request), base::InvalidArgumentError("too small"));
  };
  EXPECT_EQ(Try(service, call).message(), "too small");
  EXPECT_THAT(sizes, ElementsAre(8, 5));
}

TEST(Try, RefusesInputsThatWouldFillTheMemory) {
  service::FakeService service(service::MakeModel({DataType::kFp32}));
  const SampleCall call{.model = "m",
                        .inputs = {{.name = "IN0",
                                    .type = DataType::kFp32,
                                    .shape = {int64_t{1} << 40, int64_t{1} << 40}}},
                        .outputs = {}};
  EXPECT_THAT(std::string(Try(service, call).message()), HasSubstr("too large"));
}

}  // namespace
}  // namespace nereid::cli
