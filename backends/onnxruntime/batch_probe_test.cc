// SPDX-License-Identifier: Apache-2.0
// Tests the probe with real sessions of ONNX Runtime; its verdicts are tested beside
// backend_kit/batch_probe.h.
#include "onnxruntime_backend/batch_probe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "onnxruntime_backend/testing/messages.h"

namespace nereid::onnxruntime {
namespace {

// A dimension is a number or a name, which may be empty.
std::string Tensor(const std::string& name, int type, const std::vector<std::string>& dims) {
  std::string shape;
  for (const std::string& dim : dims) {
    const bool is_number = !dim.empty() && dim[0] >= '0' && dim[0] <= '9';
    shape += Bytes(1, is_number ? Number(1, std::stoul(dim)) : dim.empty() ? "" : Bytes(2, dim));
  }
  return Bytes(1, name) +
         Bytes(2, Bytes(1, Number(1, static_cast<uint64_t>(type)) + Bytes(2, shape)));
}
std::string Node(const std::string& op, const std::vector<std::string>& inputs) {
  std::string node;
  for (const std::string& input : inputs) {
    node += Bytes(1, input);
  }
  return Bytes(1, node + Bytes(2, "Y") + Bytes(4, op));
}
// A constant of 64-bit integers without dimensions.
std::string Constant(const std::string& name, int64_t value) {
  return Bytes(5, Number(2, 7) + Bytes(8, name) +
                      Bytes(9, {reinterpret_cast<const char*>(&value), sizeof(value)}));
}
// `rows` rows of one float.
std::string Table(const std::string& name, uint64_t rows) {
  std::string data;
  for (uint64_t r = 0; r < rows; ++r) {
    const auto value = static_cast<float>(r * r);
    data.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return Bytes(5, Number(1, rows) + Number(1, 1) + Number(2, 1) + Bytes(8, name) + Bytes(9, data));
}

constexpr int kFloat = 1;
constexpr int kInt64 = 7;
constexpr int kString = 8;

std::string Input(int type, const std::vector<std::string>& dims) {
  return Bytes(11, Tensor("X", type, dims));
}
std::string Output(int type, const std::vector<std::string>& dims) {
  return Bytes(12, Tensor("Y", type, dims));
}

class Probe : public testing::Test {
 protected:
  void SetUp() override {
    auto environment = Environment::Create(CommandLine());
    ASSERT_TRUE(environment.ok());
    environment_ = std::move(environment).value();
  }

  std::string Reason(const std::string& graph, const ProbeLimits& limits = {},
                     const Settings& settings = {.intra_op_threads = 1}) {
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) /
        (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
         "_probe.onnx");
    std::ofstream(path, std::ios::binary)
        << Number(1, 8) + Bytes(7, graph + Bytes(2, "g")) + Bytes(8, Number(2, 13));
    auto session = Session::Load(*environment_, path.string(), settings, {}, "m");
    std::filesystem::remove(path);
    if (!session.ok()) {
      return session.TakeError().message();
    }
    const backend::BatchVerdict verdict = DecideBatching(*session.value(), 4, limits);
    text_ = verdict.text;
    return verdict.reason;
  }

  std::unique_ptr<Environment> environment_;
  std::string text_;
};

TEST_F(Probe, RunsSessionsOfEveryKindOfTensor) {
  EXPECT_EQ(
      Reason(Node("Add", {"X", "X"}) + Input(kFloat, {"N", "3"}) + Output(kFloat, {"N", "3"})),
      "probed");
  EXPECT_EQ(Reason(Node("Add", {"X", "X"}) + Input(kFloat, {"", ""}) + Output(kFloat, {"", ""})),
            "probed");
  EXPECT_EQ(
      Reason(Node("Identity", {"X"}) + Input(kString, {"", "2"}) + Output(kString, {"", "2"})),
      "probed");
  EXPECT_EQ(Reason(Node("Add", {"X", "X"}) + Input(kInt64, {"batch"}) + Output(kInt64, {"batch"})),
            "probed");
}

TEST_F(Probe, FindsIndicesWithinTheTable) {
  for (const uint64_t rows : {2, 10, 1000}) {
    EXPECT_EQ(Reason(Node("Gather", {"T", "X"}) + Table("T", rows) + Input(kInt64, {"N", "4"}) +
                     Output(kFloat, {"N", "4", "1"})),
              "probed")
        << rows << " " << text_;
  }
  // A table of one row shows no dependence on rows.
  EXPECT_EQ(Reason(Node("Gather", {"T", "X"}) + Table("T", 1) + Input(kInt64, {"N", "4"}) +
                   Output(kFloat, {"N", "4", "1"})),
            "does_not_run");
}

TEST_F(Probe, ReadsTheNamesOfDimensions) {
  EXPECT_EQ(
      Reason(Node("Add", {"X", "X"}) + Input(kFloat, {"seq", "3"}) + Output(kFloat, {"seq", "3"})),
      "symbol_name");
  EXPECT_EQ(
      Reason(Node("Transpose", {"X"}) + Input(kFloat, {"a", "b"}) + Output(kFloat, {"b", "a"})),
      "symbols_differ");
}

TEST_F(Probe, FindsRowsThatInfluenceOthers) {
  EXPECT_EQ(Reason(Node("CumSum", {"X", "axis"}) + Constant("axis", 0) + Input(kFloat, {"", "3"}) +
                   Output(kFloat, {"", "3"})),
            "row_values");
  EXPECT_EQ(Reason(Node("Transpose", {"X"}) + Input(kFloat, {"", ""}) + Output(kFloat, {"", ""})),
            "row_count");
  EXPECT_EQ(text_, "output 'Y' has shape [8,1] for inputs of 1 row");
}

TEST_F(Probe, StopsAtItsLimits) {
  const std::string add =
      Node("Add", {"X", "X"}) + Input(kFloat, {"", "3"}) + Output(kFloat, {"", "3"});
  EXPECT_EQ(Reason(add, {.cpu_time = std::chrono::milliseconds(0)}), "too_slow");
  EXPECT_EQ(Reason(add, {.output_bytes = 8}), "too_large");
}

TEST_F(Probe, WorksWithoutAnArena) {
  EXPECT_EQ(Reason(Node("Add", {"X", "X"}) + Input(kFloat, {"", "3"}) + Output(kFloat, {"", "3"}),
                   {}, {.intra_op_threads = 1, .memory_arena = false}),
            "probed");
}

}  // namespace
}  // namespace nereid::onnxruntime
