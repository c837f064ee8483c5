// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <limits>
#include <memory>

#include "backend_kit/batch_inputs.h"
#include "backend_kit/bytes.h"
#include "backend_kit/completion.h"
#include "backend_kit/config.h"
#include "backend_kit/responses.h"
#include "backend_kit/shape.h"
#include "backend_kit/tensors.h"

namespace nereid::backend {
namespace {

std::string Bytes(std::initializer_list<std::string_view> strings) {
  std::string data;
  for (const std::string_view text : strings) {
    std::string element(4 + text.size(), '\0');
    StoreString(element.data(), text);
    data += element;
  }
  return data;
}

std::vector<std::string> Visit(const std::string& data, int64_t expected, Error* error) {
  std::vector<std::string> seen;
  *error =
      ForEachString(data, expected, "IN", [&](std::string_view text) { seen.emplace_back(text); });
  return seen;
}

TEST(Bytes, RoundTripsWhateverTheElementsHold) {
  const std::string with_zero("a\0b", 3);
  Error error;
  EXPECT_EQ(Visit(Bytes({"", with_zero, "xyz"}), 3, &error),
            (std::vector<std::string>{"", with_zero, "xyz"}));
  EXPECT_TRUE(error.ok());
}

TEST(Bytes, RefusesAnElementCutShort) {
  std::string data = Bytes({"abc"});
  data.pop_back();
  Error error;
  Visit(data, 1, &error);
  EXPECT_STREQ(error.message(),
               "incomplete string data for inference input 'IN', expecting string of length 3 but "
               "only 2 bytes available");
}

TEST(Bytes, RefusesMoreElementsThanExpected) {
  Error error;
  EXPECT_EQ(Visit(Bytes({"a", "b"}), 1, &error).size(), 1u);
  EXPECT_STREQ(error.message(),
               "unexpected number of string elements 2 for inference input 'IN', expecting 1");
}

TEST(Bytes, RefusesFewerElementsThanExpectedAndATrailingFragment) {
  Error error;
  Visit(Bytes({"a"}) + std::string("\1\0", 2), 2, &error);
  EXPECT_STREQ(error.message(), "expected 2 strings for inference input 'IN', got 1");
}

TEST(Bytes, RefusesAFragmentAfterAllElements) {
  Error error;
  Visit(Bytes({"a"}) + std::string("\1\0", 2), 1, &error);
  EXPECT_STREQ(error.message(),
               "incomplete string length indicator for inference input 'IN', expecting 4 bytes but "
               "only 2 bytes available");
}

TEST(Bytes, RefusesALengthNearTheLargestInteger) {
  Error error;
  Visit("\xff\xff\xff\xff", 1, &error);
  EXPECT_FALSE(error.ok());
}

TEST(Shape, CountsAScalarAsOneAndAnEmptyTensorAsNone) {
  EXPECT_EQ(ElementCount({}).value(), 1);
  const int64_t empty[] = {3, 0, 5};
  EXPECT_EQ(ElementCount(empty).value(), 0);
}

TEST(Shape, RefusesOverflowAndNegativeDimensions) {
  const int64_t huge[] = {std::numeric_limits<int64_t>::max(), 2};
  EXPECT_FALSE(ElementCount(huge).ok());
  const int64_t negative[] = {-1};
  EXPECT_FALSE(ElementCount(negative).ok());
  const int64_t wide[] = {std::numeric_limits<int64_t>::max()};
  EXPECT_TRUE(ElementCount(wide).ok());
  const int64_t pages[] = {int64_t{1} << 61};
  EXPECT_FALSE(TensorByteSize(TRITONSERVER_TYPE_FP64, pages).ok());
}

TEST(Shape, PrintsAsTritonDoes) {
  const int64_t shape[] = {1, -1, 3};
  EXPECT_EQ(ShapeToString(shape), "[1,-1,3]");
  EXPECT_EQ(ShapeToString({}), "[]");
}

TEST(Config, ReadsParametersAndDefaults) {
  auto config = ModelConfig::Parse(
      R"({"max_batch_size":"8","input":[{"name":"A","dims":["1",2],"reshape":{"shape":[]}}],
          "parameters":{"n":{"string_value":"7"},"b":{"string_value":"On"},"x":{"string_value":"seven"}}})");
  ASSERT_TRUE(config.ok());
  const ModelConfig& c = config.value();
  EXPECT_EQ(c.max_batch_size(), 8);
  EXPECT_EQ(c.IntParameter("n", 0).value(), 7);
  EXPECT_EQ(c.IntParameter("absent", 3).value(), 3);
  EXPECT_TRUE(c.BoolParameter("b", false).value());
  EXPECT_STREQ(c.IntParameter("x", 0).TakeError().message(),
               "failed to convert 'seven' to integral number");
  const auto& input = ArrayOf(c.json(), "input")[0];
  EXPECT_EQ(DimsMember(input, "dims"), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(ModelDims(input).empty());
  EXPECT_EQ(ArrayOf(c.json(), "output").Size(), 0u);
}

TEST(Config, SaysWhichTensorIsListedWithAllDimensionsOfTheModel) {
  const auto listed = [](const char* input) {
    auto config = ModelConfig::Parse(StrCat(R"({"input":[{"name":"x",)", input, "}]}"));
    return ListedWithoutBatch(config.value(), [](const std::string& name) {
      return name == "x" ? std::optional<size_t>(2) : std::nullopt;
    });
  };
  EXPECT_EQ(listed(R"("dims":["-1","4"])"), "x");
  EXPECT_EQ(listed(R"("dims":["4"])"), std::nullopt);
  EXPECT_EQ(listed(R"("dims":["4"],"reshape":{"shape":["2","2"]})"), "x");
  EXPECT_EQ(listed(R"("dims":["-1","4"],"allow_ragged_batch":true)"), std::nullopt);
}

TEST(Config, RefusesWhatIsNotAnObject) {
  EXPECT_FALSE(ModelConfig::Parse("[1]").ok());
  EXPECT_FALSE(ModelConfig::Parse("{").ok());
}

// Returns the shape, then the values, of a batch input for sources of shapes [1,3] and [2,2].
std::pair<std::vector<int64_t>, std::vector<int32_t>> Make(const std::string& kind) {
  auto config = ModelConfig::Parse(R"({"batch_input":[{"kind":")" + kind +
                                   R"(","target_name":["T"],"source_input":["S"]}]})");
  auto specs = ReadBatchInputs(config.value());
  const int64_t first[] = {1, 3};
  const int64_t second[] = {2, 2};
  const std::span<const int64_t> sources[] = {first, second};
  BatchInputTensor tensor;
  EXPECT_TRUE(tensor.Make(specs.value()[0], sources).ok());
  std::vector<int32_t> values(tensor.data().size() / 4);
  std::memcpy(values.data(), tensor.data().data(), tensor.data().size());
  return {{tensor.shape().begin(), tensor.shape().end()}, values};
}

TEST(BatchInputs, DescribeHowABatchWasFormed) {
  using Made = std::pair<std::vector<int64_t>, std::vector<int32_t>>;
  EXPECT_EQ(Make("BATCH_ELEMENT_COUNT"), (Made{{2}, {3, 4}}));
  EXPECT_EQ(Make("BATCH_ACCUMULATED_ELEMENT_COUNT"), (Made{{2}, {3, 7}}));
  EXPECT_EQ(Make("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"), (Made{{3}, {0, 3, 7}}));
  EXPECT_EQ(Make("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"), (Made{{4}, {0, 0, 0, 0}}));
  EXPECT_EQ(Make("BATCH_ITEM_SHAPE"), (Made{{3, 1}, {3, 2, 2}}));
  EXPECT_EQ(Make("BATCH_ITEM_SHAPE_FLATTEN"), (Made{{3}, {3, 2, 2}}));
}

TEST(BatchInputs, AreFloatsIfTheConfigurationSaysSo) {
  auto config = ModelConfig::Parse(R"({"batch_input":[{"data_type":"TYPE_FP32",
      "target_name":["T"],"source_input":["S"]}]})");
  auto specs = ReadBatchInputs(config.value());
  const int64_t source[] = {1, 3};
  const std::span<const int64_t> sources[] = {source};
  BatchInputTensor tensor;
  ASSERT_TRUE(tensor.Make(specs.value()[0], sources).ok());
  float value = 0;
  std::memcpy(&value, tensor.data().data(), sizeof(value));
  EXPECT_EQ(value, 3.0F);
}

TEST(BatchInputs, RefuseShapesThatDoNotFitIntoOneTensor) {
  auto config = ModelConfig::Parse(R"({"batch_input":[{"kind":"BATCH_ITEM_SHAPE",
      "target_name":["T"],"source_input":["S"]}]})");
  auto specs = ReadBatchInputs(config.value());
  const int64_t flat[] = {1, 3};
  const int64_t square[] = {1, 3, 3};
  const std::span<const int64_t> sources[] = {flat, square};
  BatchInputTensor tensor;
  EXPECT_FALSE(tensor.Make(specs.value()[0], sources).ok());
  config = ModelConfig::Parse(R"({"batch_input":[{"kind":"BATCH_NEW","source_input":["S"]}]})");
  EXPECT_FALSE(ReadBatchInputs(config.value()).ok());
}

TEST(ScratchBuffer, KeepsItsMemoryUntilItMustGrow) {
  ScratchBuffer scratch;
  char* first = scratch.Ensure(0);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(scratch.Ensure(10), first);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch.Ensure(4096)) % ScratchBuffer::kAlignment, 0u);
}

TEST(BackgroundWork, RunsSeveralPiecesOfWorkConcurrently) {
  BackgroundWork background;
  std::promise<void> first;
  std::promise<void> second;
  background.Start([&] {
    second.get_future().wait();
    first.set_value();
  });
  background.Start([&] { second.set_value(); });
  first.get_future().wait();
}

TEST(BackgroundWork, EndsOnlyWhenAllWorkIsDone) {
  std::atomic<int> runs{0};
  for (int round = 0; round < 50; ++round) {
    BackgroundWork background;
    for (int i = 0; i < 20; ++i) background.Start([&runs] { runs.fetch_add(1); });
  }
  EXPECT_EQ(runs.load(), 1000);
}

TEST(BackgroundWork, DestroysFinishedWorkBeforeItWaits) {
  BackgroundWork background;
  std::promise<void> gone;
  auto held = std::shared_ptr<int>(new int, [&gone](int* value) {
    delete value;
    gone.set_value();
  });
  background.Start([held = std::move(held)] {});
  gone.get_future().wait();
}

}  // namespace
}  // namespace nereid::backend
