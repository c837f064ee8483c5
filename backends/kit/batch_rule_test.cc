// SPDX-License-Identifier: Apache-2.0
#include "backend_kit/batch_rule.h"

#include <gtest/gtest.h>

namespace nereid::backend {
namespace {

ModelTensor Input(std::vector<int64_t> dims, std::vector<std::string> symbols) {
  return {.name = "X",
          .type = TRITONSERVER_TYPE_FP32,
          .dims = std::move(dims),
          .symbols = std::move(symbols)};
}
ModelTensor Output(std::vector<int64_t> dims, std::vector<std::string> symbols) {
  ModelTensor tensor = Input(std::move(dims), std::move(symbols));
  tensor.name = "Y";
  tensor.is_output = true;
  return tensor;
}

// Returns the reason and the text, or nothing.
std::string Refusal(const std::vector<ModelTensor>& tensors) {
  const auto refusal = RefuseByDescription(tensors);
  return refusal ? refusal->reason + ": " + refusal->text : "";
}

TEST(BatchRule, DistinguishesNamesOfBatchesFromOtherNames) {
  for (const char* name :
       {"batch", "N", "n", "batch_size", "BatchSize", "bs", "rows", "num_samples", "images", "dim0",
        "s0", "s77", "batch_sequence", "unk__12", "None", ""}) {
    EXPECT_FALSE(IsNameOfSomethingElse(name)) << name;
  }
  for (const char* name : {"seq",
                           "Seq",
                           "sequence",
                           "seq_len",
                           "seqLen",
                           "seqlen",
                           "sequence_length",
                           "time",
                           "timesteps",
                           "T",
                           "t",
                           "num_tokens",
                           "numFrames",
                           "maxlen",
                           "MAX_LENGTH",
                           "input_length",
                           "height",
                           "W",
                           "steps",
                           "past_sequence_length + sequence_length",
                           "num_boxes",
                           "nodes"}) {
    EXPECT_TRUE(IsNameOfSomethingElse(name)) << name;
  }
}

TEST(BatchRule, KnowsNamesGeneratedByConverters) {
  for (const char* name : {"", "?", "None", "unk__12", "unk_3", "y_dim_0", "Softmaxoutput_dim_0",
                           "p2o.DynamicDimension.3", "Resize_o0__d2"}) {
    EXPECT_TRUE(IsGeneratedSymbol(name)) << name;
  }
  for (const char* name : {"batch", "N", "s0", "dim0", "unk", "unknown_batch", "x_dim_", "d2"}) {
    EXPECT_FALSE(IsGeneratedSymbol(name)) << name;
  }
}

TEST(BatchRule, RequiresEveryFirstDimensionToBeVariable) {
  EXPECT_EQ(Refusal({Input({-1, 4}, {}), Output({-1}, {})}), "");
  EXPECT_EQ(Refusal({Input({-1, 4}, {}), Output({1, 4}, {})}),
            "fixed_dimension: the first dimension of output 'Y' is 1");
  EXPECT_EQ(Refusal({Input({}, {}), Output({-1}, {})}),
            "fixed_dimension: input 'X' has no dimensions");
}

TEST(BatchRule, RequiresOneNameForAllFirstDimensions) {
  EXPECT_EQ(Refusal({Input({-1, 4}, {"N", ""}), Output({-1, 4}, {"N", ""})}), "");
  EXPECT_EQ(Refusal({Input({-1, 4}, {"N", ""}), Output({-1, 4}, {"", ""})}), "");
  EXPECT_EQ(Refusal({Input({-1, 4}, {"unk__1", ""}), Output({-1, 4}, {"unk__2", ""})}), "");
  EXPECT_EQ(Refusal({Input({-1, 4}, {"var_0", ""}), Output({-1, 4}, {"var_1", ""})}), "");
  EXPECT_NE(Refusal({Input({-1, 4}, {"s0", ""}), Output({-1, 4}, {"s1", ""})}), "");
  EXPECT_EQ(
      Refusal({Input({-1, 4}, {"N", ""}), Output({-1, 4}, {"M", ""})}),
      "symbols_differ: the first dimension of input 'X' is called 'N', that of output 'Y' 'M'");
}

TEST(BatchRule, RefusesANameThatMeansSomethingElse) {
  EXPECT_EQ(Refusal({Input({-1, 4}, {"seq", ""}), Output({-1, 4}, {"", ""})}),
            "symbol_name: the first dimension of input 'X' is called 'seq'");
}

TEST(BatchRule, RefusesABatchThatIsElsewhere) {
  EXPECT_EQ(Refusal({Input({-1, -1, 4}, {"", "batch_size", ""}), Output({-1}, {})}),
            "batch_elsewhere: dimension 1 of input 'X' is called 'batch_size'");
  EXPECT_EQ(Refusal({Input({-1, 4}, {"N", ""}), Output({-1, -1}, {"N", "N"})}),
            "symbol_elsewhere: dimension 1 of output 'Y' is 'N', as the first ones are");
}

TEST(BatchRule, WritesAVerdictAsJson) {
  EXPECT_EQ(BatchVerdict::No("row_values", "a \"b\"").ToJson(),
            R"({"batched":false,"reason":"row_values","text":"a \"b\""})");
}

}  // namespace
}  // namespace nereid::backend
