// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/input_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::pytorch {
namespace {

using ::testing::HasSubstr;

// What AOTInductor generates for x [rows, 4] and ids [rows], with up to 64 rows.
constexpr std::string_view kSource = R"(
    inputs_info_[0].name = "arg1_1";
    inputs_info_[1].name = "arg2_1";
AOTI_NOINLINE static void check_input_0(
    AtenTensorHandle* input_handles
) {
    int32_t arg1_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg1_1_expected_dtype != arg1_1_dtype) {
    auto arg1_1_size = arg1_1.sizes();

    if (arg1_1_size[0] < 2) {
    if (arg1_1_size[0] > 64) {
    if (4 != arg1_1_size[1]) {
    auto arg1_1_stride = arg1_1.strides();
    if (4 != arg1_1_stride[0]) {
    if (1 != arg1_1_stride[1]) {
AOTI_NOINLINE static void check_input_1(
    int32_t arg2_1_expected_dtype = aoti_torch_dtype_int64();
    if (arg2_1_size[0] < 2) {
    if (arg2_1_size[0] > 64) {
    if (1 != arg2_1_stride[0]) {
void AOTInductorModel::run_impl(
    int64_t s77 = arg1_1_size[0];
    int64_t s78 = s77;
    if (_check_env()) { assert_size_stride(arg1_1, {s77, 4L}, {4L, 1L}, "input"); }
    if (_check_env()) { assert_size_stride(arg2_1, {s78, }, {1L, }, "input"); }
    cpp_fused_1((const float*)(arg1_1.data_ptr()), (const int64_t*)(arg2_1.data_ptr()), s77);
)";

std::string Replaced(std::string_view from, std::string_view to) {
  std::string source(kSource);
  for (size_t at = source.find(from); at != source.npos; at = source.find(from, at + to.size())) {
    source.replace(at, from.size(), to);
  }
  return source;
}

std::vector<InputRule> Rules() {
  std::optional<std::vector<InputRule>> rules = ReadInputRules(kSource);
  EXPECT_TRUE(rules.has_value());
  return rules.value_or(std::vector<InputRule>());
}

// The error of a call with x and ids of these shapes.
std::string Check(std::vector<int64_t> x, std::vector<int64_t> ids,
                  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INT64) {
  const std::vector<CallInput> inputs = {
      {.name = "x", .is_present = true, .datatype = TRITONSERVER_TYPE_FP32, .shape = x},
      {.name = "ids", .is_present = true, .datatype = type, .shape = ids}};
  return CheckInputs(Rules(), inputs).message();
}

TEST(InputRules, AreReadFromTheGeneratedSource) {
  const std::vector<InputRule> rules = Rules();
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].datatype, TRITONSERVER_TYPE_FP32);
  EXPECT_EQ(ShapeText(rules[0]), "[-1, 4]");
  EXPECT_EQ(rules[0].dims[0].most, 64);
  EXPECT_EQ(rules[1].datatype, TRITONSERVER_TYPE_INT64);
  EXPECT_EQ(ShapeText(rules[1]), "[-1]");
  EXPECT_FALSE(rules[0].is_written);
}

TEST(InputRules, ShapesThatFitAreAccepted) {
  EXPECT_EQ(Check({2, 4}, {2}), "");
  EXPECT_EQ(Check({64, 4}, {64}), "");
  // Although the generated code says 2, a single row works.
  EXPECT_EQ(Check({1, 4}, {1}), "");
}

TEST(InputRules, OtherTypesRanksAndSizesAreRefused) {
  EXPECT_EQ(Check({2, 5}, {2}),
            "input 'x' has shape [2, 5], but the model was compiled for [-1, 4]");
  EXPECT_THAT(Check({2, 4, 1}, {2}), HasSubstr("input 'x' has shape [2, 4, 1]"));
  EXPECT_THAT(Check({2}, {2}), HasSubstr("input 'x' has shape [2]"));
  EXPECT_THAT(Check({65, 4}, {65}), HasSubstr("dimension 0 may be 1 to 64"));
  EXPECT_THAT(Check({0, 4}, {0}), HasSubstr("dimension 0 may be 1 to 64"));
  EXPECT_THAT(Check({2, 4}, {2}, TRITONSERVER_TYPE_INT32),
              HasSubstr("input 'ids' has type INT32, but"));
}

TEST(InputRules, DimensionsThatHaveToBeEqualAreCompared) {
  EXPECT_THAT(Check({4, 4}, {2}), HasSubstr("input 'ids' has shape [2], but the model was compiled "
                                            "for [-1]; dimension 0 has to be 4 as in input 'x'"));
}

TEST(InputRules, AnInputThatTheModelWritesToIsKnown) {
  auto rules = ReadInputRules(Replaced("(const float*)(arg1", "(float*)(arg1"));
  ASSERT_TRUE(rules);
  EXPECT_TRUE((*rules)[0].is_written);
  EXPECT_FALSE((*rules)[1].is_written);
  rules = ReadInputRules(std::string(kSource) + "    aoti_torch_copy_(arg2_1, buf1, 0);\n");
  ASSERT_TRUE(rules);
  EXPECT_TRUE((*rules)[1].is_written);
}

TEST(InputRules, NothingIsKnownIfAnythingIsUnusual) {
  EXPECT_FALSE(ReadInputRules(""));
  EXPECT_FALSE(ReadInputRules("int main() {}\n"));
  EXPECT_FALSE(ReadInputRules(Replaced("{s78, }", "{2L*s77, }")));
  EXPECT_FALSE(ReadInputRules(Replaced("{s78, }", "{s99, }")));
  EXPECT_FALSE(ReadInputRules(Replaced("dtype_int64()", "dtype_complex64()")));
  // Without these lines, nobody knows that both have the same number of rows.
  EXPECT_FALSE(ReadInputRules(Replaced("assert_size_stride", "other")));
  EXPECT_FALSE(ReadInputRules(Replaced("{s77, 4L}", "{s77}")));
}

TEST(InputRules, SourcesThatAreCutOffDoNoHarm) {
  for (size_t size = 0; size < kSource.size(); ++size) {
    static_cast<void>(ReadInputRules(kSource.substr(0, size)));
  }
}

}  // namespace
}  // namespace nereid::pytorch
