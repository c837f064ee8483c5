// SPDX-License-Identifier: Apache-2.0
// Tests executions from requests to responses, with a fake server and a program that needs no
// PyTorch.
#include "pytorch_backend/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "backend_kit/bytes.h"
#include "backend_kit/testing/fake_host.h"
#include "pytorch_backend/validate.h"

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

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::string Texts(const std::vector<std::string>& values) {
  std::string data;
  for (const std::string& value : values) {
    std::string element(4 + value.size(), '\0');
    backend::StoreString(element.data(), value);
    data += element;
  }
  return data;
}

// The result of a FakeProgram, which owns what it describes.
struct FakeResults : Results {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<float>> numbers;

  void Add(std::vector<int64_t> shape, std::vector<float> values, std::string path = "") {
    shapes.push_back(std::move(shape));
    numbers.push_back(std::move(values));
    tensors.push_back({.datatype = TRITONSERVER_TYPE_FP32,
                       .shape = shapes.back(),
                       .data = reinterpret_cast<const char*>(numbers.back().data()),
                       .byte_size = numbers.back().size() * sizeof(float),
                       .path = std::move(path)});
  }
};

// Calls a function instead of a model.
class FakeProgram : public Program {
 public:
  using Function = std::function<std::shared_ptr<FakeResults>(std::span<const CallInput>)>;
  FakeProgram(Signature signature, Function function)
      : signature_(std::move(signature)), function_(std::move(function)) {}
  const Signature& signature() const override { return signature_; }
  std::vector<backend::MemoryUse> weights() const override { return {}; }
  backend::Result<std::shared_ptr<const Results>> Run(std::span<const ValueNode>,
                                                      std::span<const CallInput> inputs,
                                                      bool) const override {
    ++calls;
    std::shared_ptr<const Results> results = function_(inputs);
    if (results == nullptr) return backend::Error::Internal("PyTorch execute failure: no");
    return results;
  }
  mutable int calls = 0;

 private:
  const Signature signature_;
  const Function function_;
};

std::vector<float> Numbers(const CallInput& input) {
  int64_t count = 1;
  for (const int64_t dim : input.shape) count *= dim;
  const auto* data = reinterpret_cast<const float*>(input.data);
  return {data, data + count};
}

// The program returns its first input.
std::shared_ptr<FakeResults> Echo(std::span<const CallInput> inputs) {
  auto results = std::make_shared<FakeResults>();
  results->Add({inputs[0].shape.begin(), inputs[0].shape.end()}, Numbers(inputs[0]));
  return results;
}

class Execution : public ::testing::Test {
 protected:
  void Load(const char* config_json, FakeProgram::Function function, Signature signature = One()) {
    auto config = backend::ModelConfig::Parse(config_json);
    ASSERT_TRUE(config.ok());
    auto ports = backend::Ports::FromConfig(config.value());
    ASSERT_TRUE(ports.ok());
    ports_ = std::move(ports).value();
    auto program = std::make_shared<FakeProgram>(std::move(signature), std::move(function));
    program_ = program.get();
    auto bound = std::make_shared<BoundProgram>();
    bound->program = program;
    auto arguments = BindInputs(program->signature(), InputNames(ports_), "m");
    ASSERT_TRUE(arguments.ok()) << arguments.TakeError().message();
    bound->arguments = std::move(arguments).value();
    std::vector<std::string> names;
    for (const backend::OutputPort& output : ports_.outputs) names.push_back(output.name);
    auto outputs = BindOutputs(program->signature(), names);
    ASSERT_TRUE(outputs.ok()) << outputs.TakeError().message();
    bound->outputs = std::move(outputs).value();
    instance_ =
        std::make_unique<Instance>(&handle_, "m_0", ports_, config.value().max_batch_size(), bound);
  }

  static Signature One() {
    return {.arguments = {{"x", {.kind = Kind::kTensor, .text = "Tensor"}}},
            .result = {.kind = Kind::kTensor, .text = "Tensor"}};
  }

  void Run(std::vector<TRITONBACKEND_Request>& requests) {
    std::vector<TRITONBACKEND_Request*> pointers;
    for (TRITONBACKEND_Request& request : requests) pointers.push_back(&request);
    instance_->Execute(pointers.data(), static_cast<uint32_t>(pointers.size()));
    for (const TRITONBACKEND_Request& request : requests) {
      EXPECT_EQ(request.answer.times_sent, 1);
      EXPECT_EQ(request.answer.times_released, 1);
    }
  }

  static TRITONBACKEND_Request Request(std::vector<TRITONBACKEND_Input> inputs) {
    return {.inputs = std::move(inputs), .wanted = {"y"}, .answer = {}};
  }
  static TRITONBACKEND_Input Tensor(const std::string& name, std::vector<int64_t> shape,
                                    const std::vector<float>& values) {
    return {.name = name,
            .datatype = TRITONSERVER_TYPE_FP32,
            .shape = std::move(shape),
            .buffers = {Floats(values)}};
  }

  TRITONBACKEND_ModelInstance handle_;
  backend::Ports ports_;
  const FakeProgram* program_ = nullptr;
  std::unique_ptr<Instance> instance_;
};

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

TEST_F(Execution, FindsOutputsByTheirPathsInTheResult) {
  Signature signature = One();
  signature.result = {.kind = Kind::kDict, .elements = {signature.result}, .text = "Dict"};
  Load(
      kSingle,
      [](std::span<const CallInput>) {
        auto results = std::make_shared<FakeResults>();
        results->Add({1}, {1}, "[other]");
        results->Add({1}, {2}, "[y]");
        return results;
      },
      signature);
  std::vector<TRITONBACKEND_Request> requests = {Request({Tensor("x", {1}, {1})})};
  Run(requests);
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Floats({2}));
}

TEST_F(Execution, NamesWhatAResultHasInsteadOfAMissingOutput) {
  Signature signature = One();
  signature.result = {.kind = Kind::kDict, .elements = {signature.result}, .text = "Dict"};
  Load(
      kSingle,
      [](std::span<const CallInput>) {
        auto results = std::make_shared<FakeResults>();
        results->Add({1}, {1}, "[a]");
        results->Add({1}, {2}, "[b][0]");
        return results;
      },
      signature);
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

TEST(CheckPorts, RefusesStringsWithMoreThanOneDimension) {
  const backend::Ports ports{
      .inputs = {{.name = "x", .datatype = TRITONSERVER_TYPE_BYTES, .dims = {-1}}}};
  EXPECT_TRUE(CheckPorts(ports, false, "m").ok());
  EXPECT_THAT(CheckPorts(ports, true, "m").message(),
              HasSubstr("only supports 1 dimensional List of String as input for 'x'"));
}

TEST(CheckInputsListed, WritesAConfigurationToBeginWith) {
  Signature signature{.arguments = {{"x", {.kind = Kind::kTensor, .text = "Tensor"}},
                                    {"names", {.kind = Kind::kStrings, .text = "List[str]"}}},
                      .result = {.kind = Kind::kTensor, .text = "Tensor"}};
  EXPECT_THAT(CheckInputsListed({}, FakeProgram(signature, Echo), "m").message(),
              HasSubstr("configuration expects 0 inputs, model provides 2: TorchScript files have "
                        "no types and shapes, so config.pbtxt has to say them: "
                        "forward(x: Tensor, names: List[str]) -> Tensor is input [ { name: \"x\" "
                        "data_type: TYPE_... dims: [ ... ] }, { name: \"names\" data_type: "
                        "TYPE_STRING dims: [ -1 ] } ]; outputs may be left out"));
}

TEST(CheckKinds, RefusesNumbersForAListOfStrings) {
  const backend::Ports ports{.inputs = {{.name = "x", .datatype = TRITONSERVER_TYPE_FP32}}};
  const ValueType strings{.kind = Kind::kStrings, .text = "List[str]"};
  EXPECT_STREQ(CheckKinds(ports, {{.type = &strings, .input = 0}}).message(),
               "configuration expects datatype TYPE_FP32 for input 'x', model provides List[str]");
}

}  // namespace
}  // namespace nereid::pytorch
