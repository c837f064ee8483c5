// SPDX-License-Identifier: Apache-2.0
// Tests executions from requests to responses, with a fake server and a program that needs no
// PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_backend/instance_fixture.h"

// The functions of the server that these tests need besides the kit's fakes.
extern "C" TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char* name) {
  return std::string_view(name) == "FP32"    ? TRITONSERVER_TYPE_FP32
         : std::string_view(name) == "INT32" ? TRITONSERVER_TYPE_INT32
                                             : TRITONSERVER_TYPE_INVALID;
}
extern "C" const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType type) {
  return type == TRITONSERVER_TYPE_FP32    ? "FP32"
         : type == TRITONSERVER_TYPE_INT32 ? "INT32"
                                           : "<invalid>";
}

namespace nereid::pytorch {
namespace {

using ::testing::HasSubstr;
using Kind = ValueType::Kind;

constexpr const char* kBatched =
    R"({"max_batch_size":8,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[2]}],
        "output":[{"name":"y","data_type":"TYPE_FP32","dims":[2]}]})";
constexpr const char* kSingle =
    R"({"input":[{"name":"x","data_type":"TYPE_FP32","dims":[-1]}],
        "output":[{"name":"y","data_type":"TYPE_FP32","dims":[1]}]})";

TEST_F(Execution, RunsABatchTogetherAndGivesEachRequestItsRows) {
  Load(kBatched, Echo);
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1, 2}, {1, 2})}),
                                                 Request({Tensor("x", {2, 2}, {3, 4, 5, 6})})};
  Run(requests);
  EXPECT_EQ(program_->calls, 1);
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Floats({1, 2}));
  EXPECT_EQ(requests[1].answer.outputs["y"].bytes, Floats({3, 4, 5, 6}));
  EXPECT_EQ(requests[1].answer.outputs["y"].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(handle_.executed_batches, std::vector<uint64_t>{3});
}

TEST_F(Execution, FailsOnlyTheRequestWhoseDataIsTooShort) {
  Load(kBatched, Echo);
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1, 2}, {1})}),
                                                 Request({Tensor("x", {1, 2}, {3, 4})})};
  Run(requests);
  EXPECT_THAT(requests[0].answer.error, HasSubstr("total byte size"));
  EXPECT_EQ(requests[1].answer.error, "");
  EXPECT_EQ(requests[1].answer.outputs["y"].bytes, Floats({3, 4}));
}

TEST_F(Execution, RefusesResultsWithOtherRowsThanTheBatch) {
  Load(kBatched, [](std::span<const CallInput>) {
    auto results = std::make_shared<FakeResults>();
    results->Add({3, 2}, {1, 2, 3, 4, 5, 6});
    return results;
  });
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1, 2}, {1, 2})}),
                                                 Request({Tensor("x", {1, 2}, {3, 4})})};
  Run(requests);
  for (const TRITONBACKEND_Request& request : requests) {
    EXPECT_THAT(request.answer.error, HasSubstr("expected batch size of 2 in model output, got 3"));
  }
}

TEST_F(Execution, ReportsTheFailureOfAModelToEveryRequestOfTheBatch) {
  Load(kBatched, [](std::span<const CallInput>) { return std::shared_ptr<FakeResults>(); });
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1, 2}, {1, 2})})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.error, "PyTorch execute failure: no");
}

TEST_F(Execution, RefusesAResultOfAnotherType) {
  Load(R"({"input":[{"name":"x","data_type":"TYPE_FP32","dims":[-1]}],
           "output":[{"name":"y","data_type":"TYPE_INT32","dims":[-1]}]})",
       Echo);
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1}, {1})})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.error,
            "configuration expects datatype TYPE_INT32 for output 'y', model provides TYPE_FP32");
}

TEST_F(Execution, GivesAScalarTheConfiguredDimensions) {
  const auto scalar = [](std::span<const CallInput>) {
    auto results = std::make_shared<FakeResults>();
    results->Add({}, {7});
    return results;
  };
  Load(kSingle, scalar);
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1}, {1})})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.outputs["y"].shape, std::vector<int64_t>{1});
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Floats({7}));
  Load(kBatched, scalar);
  requests = {Request({Tensor("x", {1, 2}, {1, 2})})};
  Run(requests);
  EXPECT_THAT(requests[0].answer.error,
              HasSubstr("output 'y' is a scalar which is not supported."));
}

// A fixture for models whose result is a dictionary.
class ExecutionOfDictionary : public Execution {
 protected:
  // The model returns 1 at the first path, 2 at the second, and so on.
  void LoadDictionary(const std::vector<std::string>& paths) {
    Signature signature = One();
    signature.result = {.kind = Kind::kDict, .elements = {signature.result}, .text = "Dict"};
    const auto make = [paths](std::span<const CallInput>) {
      auto results = std::make_shared<FakeResults>();
      float number = 0;
      for (const std::string& path : paths) results->Add({1}, {++number}, path);
      return results;
    };
    Load(kSingle, make, signature);
  }
};

TEST_F(ExecutionOfDictionary, FindsOutputsByTheirPaths) {
  LoadDictionary({"[other]", "[y]"});
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1}, {1})})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Floats({2}));
}

TEST_F(ExecutionOfDictionary, NamesWhatItHasInsteadOfAMissingOutput) {
  LoadDictionary({"[a]", "[b][0]"});
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1}, {1})})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.error,
            "the model's result has no 'y'; it has RESULT[a], RESULT[b][0]");
}

TEST_F(Execution, RunsRequestsWithDifferentOptionalInputsApart) {
  Signature signature = One();
  signature.arguments.push_back(
      {"bias", {.kind = Kind::kOptional, .elements = {signature.result}, .text = "Optional"}});
  Load(
      R"({"max_batch_size":8,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[1]},
             {"name":"bias","data_type":"TYPE_FP32","dims":[1],"optional":true}],
           "output":[{"name":"y","data_type":"TYPE_FP32","dims":[1]}]})",
      [](std::span<const CallInput> inputs) {
        auto results = Echo(inputs);
        for (float& number : results->numbers[0]) number += inputs[1].is_present ? 100.F : 0.F;
        return results;
      },
      signature);
  std::vector<TRITONBACKEND_Request> requests = {
      Request({Tensor("x", {1, 1}, {1})}),
      Request({Tensor("x", {1, 1}, {2}), Tensor("bias", {1, 1}, {5})}),
      Request({Tensor("x", {1, 1}, {3})})};
  Run(requests);
  EXPECT_EQ(program_->calls, 2);
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Floats({1}));
  EXPECT_EQ(requests[1].answer.outputs["y"].bytes, Floats({102}));
  EXPECT_EQ(requests[2].answer.outputs["y"].bytes, Floats({3}));
}

TEST_F(Execution, ConcatenatesRaggedInputsAndCountsTheirElements) {
  Signature signature = One();
  signature.arguments.push_back({"counts", signature.result});
  Load(
      R"({"max_batch_size":8,
           "input":[{"name":"x","data_type":"TYPE_FP32","dims":[-1],"allow_ragged_batch":true}],
           "batch_input":[{"kind":"BATCH_ELEMENT_COUNT","data_type":"TYPE_FP32",
                           "target_name":["counts"],"source_input":["x"]}],
           "output":[{"name":"y","data_type":"TYPE_FP32","dims":[1]}]})",
      [](std::span<const CallInput> inputs) {
        EXPECT_EQ(Numbers(inputs[0]), (std::vector<float>{1, 2, 3, 4, 5}));
        auto results = std::make_shared<FakeResults>();
        results->Add({2, 1}, Numbers(inputs[1]));
        return results;
      },
      signature);
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1, 2}, {1, 2})}),
                                                 Request({Tensor("x", {1, 3}, {3, 4, 5})})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Floats({2}));
  EXPECT_EQ(requests[1].answer.outputs["y"].bytes, Floats({3}));
}

TEST_F(Execution, KeepsStatesAndReturnsThemOnlyIfTheyAreOutputs) {
  Signature signature = One();
  signature.arguments.push_back({"state", signature.result});
  signature.result = {
      .kind = Kind::kTuple, .elements = {signature.result, signature.result}, .text = "Tuple"};
  Load(
      R"({"max_batch_size":8,"input":[{"name":"x__0","data_type":"TYPE_FP32","dims":[1]}],
           "output":[{"name":"y__0","data_type":"TYPE_FP32","dims":[1]}],
           "sequence_batching":{"state":[{"input_name":"s__1","output_name":"t__1",
                                          "data_type":"TYPE_FP32","dims":[-1]}]}})",
      [](std::span<const CallInput> inputs) {
        auto results = Echo(inputs);
        std::vector<float> next = Numbers(inputs[1]);
        for (float& number : next) number += 1;
        results->Add({inputs[1].shape.begin(), inputs[1].shape.end()}, std::move(next));
        return results;
      },
      signature);
  std::vector<TRITONBACKEND_Request> requests = {
      Request({Tensor("x__0", {1, 1}, {1}), Tensor("s__1", {1, 2}, {10, 20})}),
      // A state of another size needs an execution of its own.
      Request({Tensor("x__0", {1, 1}, {2}), Tensor("s__1", {1, 1}, {30})})};
  for (TRITONBACKEND_Request& request : requests) request.wanted = {"y__0"};
  Run(requests);
  EXPECT_EQ(program_->calls, 2);
  EXPECT_EQ(requests[0].answer.states["t__1"].bytes, Floats({11, 21}));
  EXPECT_EQ(requests[1].answer.states["t__1"].bytes, Floats({31}));
  EXPECT_EQ(requests[1].answer.states["t__1"].times_updated, 1);
  EXPECT_EQ(requests[0].answer.outputs.count("t__1"), 0U);
  EXPECT_EQ(requests[0].answer.outputs["y__0"].bytes, Floats({1}));
}

TEST_F(Execution, PassesStringsWithAnyBytes) {
  Load(R"({"input":[{"name":"x","data_type":"TYPE_STRING","dims":[-1]}],
           "output":[{"name":"y","data_type":"TYPE_STRING","dims":[-1]}]})",
       [](std::span<const CallInput> inputs) {
         auto results = std::make_shared<FakeResults>();
         results->shapes.push_back({static_cast<int64_t>(inputs[0].strings.size())});
         results->tensors.push_back(
             {.datatype = TRITONSERVER_TYPE_BYTES,
              .shape = results->shapes.back(),
              .strings = {inputs[0].strings.rbegin(), inputs[0].strings.rend()}});
         return results;
       });
  const std::string zeros("a\0b", 3);
  std::vector<TRITONBACKEND_Request> requests = {Request({{.name = "x",
                                                           .datatype = TRITONSERVER_TYPE_BYTES,
                                                           .shape = {3},
                                                           .buffers = {Texts({zeros, "", "é"})}}})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Texts({"é", "", zeros}));
}

}  // namespace
}  // namespace nereid::pytorch
