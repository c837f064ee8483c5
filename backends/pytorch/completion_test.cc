// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace nereid::pytorch {
namespace {

using ::testing::HasSubstr;
using Kind = ValueType::Kind;
using Shape = std::vector<int64_t>;

// Results with shapes and without values.
struct ShapedResults : Results {
  std::vector<Shape> shapes;

  void Add(Shape shape, TRITONSERVER_DataType type = TRITONSERVER_TYPE_FP32,
           std::string path = "") {
    shapes.push_back(std::move(shape));
    tensors.push_back({.datatype = type, .shape = shapes.back(), .path = std::move(path)});
  }
};

// A program of which only the shapes of its results are known.
class ShapedProgram : public Program {
 public:
  using Function = std::function<void(std::span<const CallInput>, ShapedResults&)>;
  ShapedProgram(Kind result, Function function) : function_(std::move(function)) {
    signature_.result = {.kind = result, .elements = {{}}, .text = "T"};
  }
  const Signature& signature() const override { return signature_; }
  std::vector<backend::MemoryUse> weights() const override { return {}; }
  backend::Result<std::shared_ptr<const Results>> Run(std::span<const ValueNode>,
                                                      std::span<const CallInput> inputs,
                                                      bool) const override {
    auto results = std::make_shared<ShapedResults>();
    function_(inputs, *results);
    return std::shared_ptr<const Results>(std::move(results));
  }

 private:
  Signature signature_;
  const Function function_;
};

backend::Ports OneInput(Shape dims) {
  return {.inputs = {{.name = "x", .datatype = TRITONSERVER_TYPE_FP32, .dims = std::move(dims)}}};
}

std::string Describe(const ShapedProgram& program, Shape dims, bool is_batching) {
  auto found = FindOutputs(program, {}, OneInput(std::move(dims)), is_batching);
  if (!found.ok()) return found.TakeError().message();
  std::string text;
  for (const FoundOutput& output : found.value()) {
    text += (text.empty() ? "" : " ") + output.name + backend::ShapeToString(output.dims);
  }
  return text;
}

Shape ShapeOf(const CallInput& input) { return {input.shape.begin(), input.shape.end()}; }

TEST(FindOutputs, TellsFixedFromVariableDimensions) {
  const ShapedProgram program(Kind::kTuple, [](std::span<const CallInput> in, ShapedResults& out) {
    out.Add(ShapeOf(in[0]));
    out.Add({7});
  });
  EXPECT_EQ(Describe(program, {-1, 4}, false), "OUTPUT__0[-1,4] OUTPUT__1[7]");
}

TEST(FindOutputs, LeavesTheBatchOut) {
  const ShapedProgram program(Kind::kTensor, [](std::span<const CallInput> in, ShapedResults& out) {
    out.Add({in[0].shape[0], 10});
  });
  EXPECT_EQ(Describe(program, {3}, true), "OUTPUT__0[10]");
}

TEST(FindOutputs, CallsOutputsAsTheKeysOfADictionary) {
  const ShapedProgram program(Kind::kDict, [](std::span<const CallInput>, ShapedResults& out) {
    out.Add({2}, TRITONSERVER_TYPE_FP32, "[scores]");
    out.Add({2}, TRITONSERVER_TYPE_FP32, "[boxes][0]");
  });
  EXPECT_EQ(Describe(program, {3}, false), "scores[2] boxes[0][2]");
}

TEST(FindOutputs, GivesAScalarOneElementAndStringsAnyNumber) {
  const ShapedProgram program(Kind::kTuple, [](std::span<const CallInput>, ShapedResults& out) {
    out.Add({});
    out.Add({3}, TRITONSERVER_TYPE_BYTES);
  });
  EXPECT_EQ(Describe(program, {3}, false), "OUTPUT__0[1] OUTPUT__1[-1]");
}

TEST(FindOutputs, RefusesResultsThatCannotBeOutputs) {
  const ShapedProgram no_rows(
      Kind::kTensor, [](std::span<const CallInput>, ShapedResults& out) { out.Add({1, 10}); });
  EXPECT_THAT(Describe(no_rows, {3}, true), HasSubstr("does not have a row for each row"));
  const ShapedProgram none(Kind::kTensor, [](std::span<const CallInput>, ShapedResults& out) {
    out.tensors.push_back({.type = "None"});
  });
  EXPECT_THAT(Describe(none, {3}, false), HasSubstr("output 'OUTPUT__0' is None"));
  const ShapedProgram many(Kind::kList, [](std::span<const CallInput> in, ShapedResults& out) {
    for (int64_t i = 0; i < in[0].shape[0]; ++i) out.Add({1});
  });
  EXPECT_THAT(Describe(many, {-1}, false), HasSubstr("number of results depends on the inputs"));
}

TEST(FindOutputs, DoesNotAllocateWhatAConfigurationShouldNotAskFor) {
  const ShapedProgram program(Kind::kTensor,
                              [](std::span<const CallInput>, ShapedResults& out) { out.Add({1}); });
  EXPECT_THAT(Describe(program, {1 << 20, 1 << 20}, false), HasSubstr("too large for a trial"));
  EXPECT_THAT(Describe(program, {int64_t{1} << 40, int64_t{1} << 40}, false),
              HasSubstr("overflow"));
}

}  // namespace
}  // namespace nereid::pytorch
