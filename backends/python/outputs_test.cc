// SPDX-License-Identifier: Apache-2.0
#include "python_backend/outputs.h"

#include <gtest/gtest.h>

#include "backend_kit/shape.h"
#include "backend_kit/testing/fake_host.h"

namespace nereid::python {
namespace {

constexpr const char* kTwo = R"("output": [
    {"name": "A", "data_type": "TYPE_FP32", "dims": ["-1", "2"]},
    {"name": "B", "data_type": "TYPE_STRING", "dims": ["1"]}])";

OutputRules Rules(const std::string& json, bool checks = true) {
  auto config = backend::ModelConfig::Parse("{" + json + "}");
  auto rules = OutputRules::Create("m", config.value(), checks);
  EXPECT_TRUE(rules.ok());
  return rules.value();
}

Tensor Make(const std::string& name, std::vector<int64_t> shape,
            TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_FP32) {
  return {.name = name, .datatype = datatype, .shape = std::move(shape), .data = {}};
}

Tensor Text(const std::string& name, std::vector<int64_t> shape) {
  return Make(name, std::move(shape), TRITONSERVER_TYPE_BYTES);
}

// Returns what is wrong with these tensors for a request for `wanted`; empty if nothing is.
std::string Check(const OutputRules& rules, std::vector<Tensor> tensors,
                  std::vector<std::string> wanted = {"A", "B"}) {
  TRITONBACKEND_Request request{.inputs = {}, .wanted = std::move(wanted), .answer = {}};
  const ModelResponse response{.kind = ResponseKind::kTensors, .tensors = std::move(tensors)};
  const std::string now = rules.Check(response, &request).message();
  const std::string later = rules.Check(response, rules.OwedTo(&request)).message();
  EXPECT_EQ(now, later);
  return now;
}

TEST(OutputRules, AcceptResponsesThatMatchTheConfiguration) {
  const OutputRules rules = Rules(kTwo);
  EXPECT_EQ(Check(rules, {Make("A", {5, 2}), Text("B", {1})}), "");
  EXPECT_EQ(Check(rules, {Text("B", {1}), Make("A", {0, 2})}), "");
  const OutputRules batched = Rules("\"max_batch_size\": 8," + std::string(kTwo));
  EXPECT_EQ(Check(batched, {Make("A", {3, 5, 2}), Text("B", {3, 1})}), "");
}

TEST(OutputRules, NameAnOutputOfAnotherType) {
  const OutputRules rules = Rules(kTwo);
  EXPECT_EQ(Check(rules, {Make("A", {5, 2}, TRITONSERVER_TYPE_FP64), Text("B", {1})}),
            "output 'A' of model 'm' has data type FP64, but its configuration says FP32");
  EXPECT_EQ(Check(rules, {Make("A", {5, 2}), Make("B", {1})}),
            "output 'B' of model 'm' has data type FP32, but its configuration says BYTES");
}

TEST(OutputRules, NameAnOutputOfAnotherShape) {
  const OutputRules rules = Rules(kTwo);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{5, 3}, {2}, {10}, {}, {1, 5, 2}, {5, 2, 1}}) {
    EXPECT_EQ(Check(rules, {Make("A", shape), Text("B", {1})}),
              backend::StrCat("output 'A' of model 'm' has shape ", backend::ShapeToString(shape),
                              ", but its configuration says [-1,2]"));
  }
  const OutputRules batched = Rules("\"max_batch_size\": 8," + std::string(kTwo));
  EXPECT_EQ(Check(batched, {Make("A", {3, 5, 2}), Text("B", {1})}),
            "output 'B' of model 'm' has shape [1], but its configuration says [-1,1], the batch "
            "dimension first");
}

TEST(OutputRules, NameARequestedOutputThatIsMissing) {
  const OutputRules rules = Rules(kTwo);
  EXPECT_EQ(Check(rules, {Make("A", {5, 2})}), "the response of model 'm' lacks output 'B'");
  EXPECT_EQ(Check(rules, {}), "the response of model 'm' lacks output 'A'");
  EXPECT_EQ(Check(rules, {Make("A", {5, 2})}, {"A"}), "");
  EXPECT_EQ(Check(rules, {Make("A", {5, 2})}, {"B"}), "the response of model 'm' lacks output 'B'");
  EXPECT_EQ(Check(rules, {Make("A", {5, 2}), Make("A", {5, 2})}, {"A"}),
            "output 'A' of model 'm' is in one response twice");
}

TEST(OutputRules, OweNothingToARequestOfADecoupledModelNorToAPartOfASequence) {
  const OutputRules decoupled =
      Rules("\"model_transaction_policy\": {\"decoupled\": true}," + std::string(kTwo));
  EXPECT_EQ(Check(decoupled, {}), "");
  EXPECT_EQ(Check(decoupled, {Text("B", {1})}), "");
  EXPECT_NE(Check(decoupled, {Text("B", {2})}), "");
  const OutputRules sequence =
      Rules("\"sequence_batching\": {\"direct\": {}}," + std::string(kTwo));
  EXPECT_EQ(Check(sequence, {}), "");
  EXPECT_EQ(Check(sequence, {Text("B", {1})}), "the response of model 'm' lacks output 'A'");
}

TEST(OutputRules, LeaveTheBatchDimensionToTheModel) {
  const OutputRules rules = Rules("\"max_batch_size\": 8," + std::string(kTwo));
  EXPECT_EQ(Check(rules, {Make("A", {100, 5, 2}), Text("B", {7, 1})}), "");
  // A first dimension of any size may stand for both.
  EXPECT_EQ(Check(rules, {Make("A", {5, 2}), Text("B", {7, 1})}), "");
  EXPECT_NE(Check(rules, {Make("A", {5, 3}), Text("B", {7, 1})}), "");
}

TEST(OutputRules, AreAboutWhatTheModelMakesWhereTheServerReshapes) {
  const OutputRules rules = Rules(R"("output": [{"name": "A", "data_type": "TYPE_FP32",
      "dims": ["4"], "reshape": {"shape": ["2", "2"]}}])");
  EXPECT_EQ(Check(rules, {Make("A", {2, 2})}, {"A"}), "");
  EXPECT_EQ(Check(rules, {Make("A", {4})}, {"A"}),
            "output 'A' of model 'm' has shape [4], but its configuration says [2,2]");
}

TEST(OutputRules, CanBeSwitchedOff) {
  const std::string text = kTwo;
  const std::string off = R"("parameters": {"CHECK_OUTPUTS": {"string_value": "no"}},)";
  const std::string on = R"("parameters": {"CHECK_OUTPUTS": {"string_value": "yes"}},)";
  EXPECT_EQ(Check(Rules(off + text), {Make("A", {1})}), "");
  EXPECT_EQ(Check(Rules(text, false), {Make("A", {1})}), "");
  EXPECT_NE(Check(Rules(on + text, false), {Make("A", {1})}), "");
  auto config = backend::ModelConfig::Parse(
      R"({"parameters": {"CHECK_OUTPUTS": {"string_value": "maybe"}}})");
  EXPECT_FALSE(OutputRules::Create("m", config.value(), true).ok());
}

TEST(OutputRules, SayNothingOfOutputsThatAreNotConfigured) {
  EXPECT_EQ(Check(Rules(kTwo), {Make("A", {5, 2}), Text("B", {1}), Make("C", {9})}), "");
  EXPECT_EQ(Check(Rules("\"output\": []"), {Make("C", {9})}, {}), "");
  EXPECT_EQ(Check(OutputRules(), {Make("C", {9})}), "");
}

}  // namespace
}  // namespace nereid::python
