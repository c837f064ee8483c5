// SPDX-License-Identifier: Apache-2.0
// Tests the probe on models that are functions in this file.
#include "backend_kit/batch_probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace nereid::backend {
namespace {

using Row = std::vector<float>;
using Rows = std::vector<Row>;

// A model from rows of X to rows of Y; no value if it fails.
using Function = std::function<std::optional<Rows>(const Rows&)>;

class FunctionRunner final : public RowRunner {
 public:
  explicit FunctionRunner(Function function) : function_(std::move(function)) {}

  Result<std::vector<HostTensor>> Run(std::span<const HostTensor> inputs) override {
    ++runs;
    const HostTensor& x = inputs[0];
    shapes.push_back(x.shape);
    if (runs > most_runs) {
      return Error::Internal("no more");
    }
    const auto rows = static_cast<size_t>(x.shape[0]);
    const size_t width = rows == 0 ? 0 : x.bytes.size() / sizeof(float) / rows;
    Rows given(rows, Row(width));
    for (size_t r = 0; r < rows; ++r) {
      std::memcpy(given[r].data(), x.bytes.data() + r * width * sizeof(float),
                  width * sizeof(float));
    }
    const auto made = function_(given);
    if (!made) {
      return Error::Internal("the function fails");
    }
    HostTensor y{.name = "Y", .type = type, .shape = {}, .bytes = {}, .strings = {}};
    y.shape = {static_cast<int64_t>(made->size()),
               made->empty() ? 0 : static_cast<int64_t>((*made)[0].size())};
    for (const Row& row : *made) {
      for (const float value : row) {
        type == TRITONSERVER_TYPE_FP16 ? row_samples::Append(y.bytes, ToHalf(value))
                                       : row_samples::Append(y.bytes, value);
      }
    }
    std::vector<HostTensor> outputs;
    outputs.push_back(std::move(y));
    return outputs;
  }
  std::optional<BatchVerdict> Exhausted() const override {
    return runs > most_runs ? std::optional(BatchVerdict::No("too_slow", "")) : std::nullopt;
  }

  int runs = 0;
  int most_runs = 1000;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_FP32;
  std::vector<std::vector<int64_t>> shapes;

 private:
  const Function function_;
};

ModelTensor X(std::vector<int64_t> dims, TRITONSERVER_DataType type = TRITONSERVER_TYPE_FP32) {
  return {.name = "X", .type = type, .dims = std::move(dims), .symbols = {}};
}

std::string Verdict(FunctionRunner& runner, const ModelTensor& input, int64_t max_rows = 4) {
  const std::vector<ModelTensor> inputs = {input};
  const BatchVerdict verdict = ProbeBatching(inputs, {.max_rows = max_rows}, runner);
  EXPECT_EQ(verdict.is_batched, verdict.reason == "probed");
  return verdict.reason;
}
std::string Verdict(Function function, int64_t max_rows = 4) {
  FunctionRunner runner(std::move(function));
  return Verdict(runner, X({-1, 5}), max_rows);
}

Rows EachRow(const Rows& rows, const std::function<float(float)>& change) {
  Rows result = rows;
  for (Row& row : result) {
    std::transform(row.begin(), row.end(), row.begin(), change);
  }
  return result;
}

TEST(BatchProbe, BatchesModelsThatTreatRowsIndependently) {
  EXPECT_EQ(Verdict([](const Rows& x) { return EachRow(x, [](float v) { return 2 * v + 1; }); }),
            "probed");
  EXPECT_EQ(Verdict([](const Rows& x) { return EachRow(x, [](float v) { return std::log(v); }); }),
            "probed");
}

TEST(BatchProbe, ToleratesRoundingErrors) {
  // Rounding errors that depend on the number of rows, as in real kernels.
  EXPECT_EQ(Verdict([](const Rows& x) {
              const float noise = 1 + 1e-5F * static_cast<float>(x.size());
              return EachRow(x, [noise](float v) { return v * noise; });
            }),
            "probed");
  FunctionRunner half([](const Rows& x) {
    const float noise = 1 + 3e-3F * static_cast<float>(x.size());
    return EachRow(x, [noise](float v) { return v * noise; });
  });
  half.type = TRITONSERVER_TYPE_FP16;
  EXPECT_EQ(Verdict(half, X({-1, 5})), "probed");
}

TEST(BatchProbe, FindsRowsThatInfluenceOthers) {
  const auto mean = [](const Rows& x, float share) {
    float sum = 0;
    for (const Row& row : x) {
      sum += row[0];
    }
    const float part = share * sum / static_cast<float>(x.size());
    return EachRow(x, [part](float v) { return v - part; });
  };
  EXPECT_EQ(Verdict([&](const Rows& x) { return mean(x, 1); }), "row_values");
  // Small influences of rows on each other are found, too.
  EXPECT_EQ(Verdict([&](const Rows& x) { return mean(x, 1e-3F); }), "row_values");
  EXPECT_EQ(Verdict([](const Rows& x) {
              Rows y = x;
              for (size_t r = 1; r < y.size(); ++r) {
                y[r][0] += y[r - 1][0];
              }
              return y;
            }),
            "row_values");
  EXPECT_EQ(Verdict([](const Rows& x) {
              Rows y = x;
              for (size_t r = 3; r < y.size(); ++r) {
                y[r][0] += x[r - 3][0];
              }
              return y;
            }),
            "row_values");
  EXPECT_EQ(Verdict([](const Rows& x) { return Rows(x.rbegin(), x.rend()); }), "row_values");
  EXPECT_EQ(Verdict([](const Rows& x) {
              Rows y = x;
              std::sort(y.begin(), y.end());
              return y;
            }),
            "row_values");
}

TEST(BatchProbe, FindsOutputsWithAnotherNumberOfRows) {
  EXPECT_EQ(Verdict([](const Rows& x) { return Rows{x[0]}; }), "row_count");
  EXPECT_EQ(Verdict([](const Rows& x) { return Rows(2 * x.size(), x[0]); }), "row_count");
  // Drops rows that repeat an earlier one.
  EXPECT_EQ(Verdict([](const Rows& x) {
              Rows y;
              for (const Row& row : x) {
                if (std::find(y.begin(), y.end(), row) == y.end()) {
                  y.push_back(row);
                }
              }
              return y;
            }),
            "row_count");
  EXPECT_EQ(Verdict([](const Rows& x) {
              Rows y;
              for (const Row& row : x) {
                if (row != Row(row.size(), 0)) {
                  y.push_back(row);
                }
              }
              return y;
            }),
            "row_count");
  EXPECT_EQ(Verdict([](const Rows& x) {
              Rows y = x;
              for (Row& row : y) {
                row.resize(x.size());
              }
              return y;
            }),
            "row_shape");
}

TEST(BatchProbe, RefusesModelsWhoseOutputsDoNotDependOnRows) {
  EXPECT_EQ(Verdict([](const Rows& x) { return Rows(x.size(), Row{1}); }), "no_effect");
  EXPECT_EQ(Verdict([](const Rows&) { return std::nullopt; }), "does_not_run");
  EXPECT_EQ(Verdict([](const Rows& x) { return x.size() == 1 ? std::optional(x) : std::nullopt; }),
            "batch_fails");
  float state = 0;
  EXPECT_EQ(Verdict([&state](const Rows& x) {
              state += 1;
              return EachRow(x, [&state](float v) { return v + state; });
            }),
            "not_deterministic");
  FunctionRunner invalid([](const Rows& x) { return x; });
  EXPECT_EQ(Verdict(invalid, X({-1, 5}, TRITONSERVER_TYPE_INVALID)), "unsupported_type");
  EXPECT_EQ(invalid.runs, 0);
}

TEST(BatchProbe, StopsAtItsLimits) {
  for (int runs = 0; runs < 12; ++runs) {
    FunctionRunner runner([](const Rows& x) { return x; });
    runner.most_runs = runs;
    EXPECT_EQ(Verdict(runner, X({-1, 5})), "too_slow") << runs;
  }
  FunctionRunner runner([](const Rows& x) { return x; });
  EXPECT_EQ(Verdict(runner, X({-1, 5 << 20})), "too_large");
  EXPECT_EQ(runner.runs, 0);
}

TEST(BatchProbe, TriesTwoSizesOfOpenDimensions) {
  FunctionRunner runner([](const Rows& x) { return x; });
  EXPECT_EQ(Verdict(runner, X({-1, -1})), "probed");
  EXPECT_EQ(runner.shapes.front()[1], 8);
  EXPECT_EQ(runner.shapes.back()[1], 16);
  // Correct with the first size, wrong with the second.
  EXPECT_EQ(Verdict(*std::make_unique<FunctionRunner>([](const Rows& x) {
              Rows y = x;
              if (y.size() > 1 && y[0].size() > 8) {
                std::swap(y[0], y[1]);
              }
              return y;
            }),
                    X({-1, -1})),
            "row_values");
  // A model that runs with one size only.
  FunctionRunner choosy(
      [](const Rows& x) { return x[0].size() == 32 ? std::optional(x) : std::nullopt; });
  EXPECT_EQ(Verdict(choosy, X({-1, -1})), "probed");
}

TEST(BatchProbe, TriesTheLargestBatch) {
  for (const int64_t max_rows : {1, 2, 3, 4, 64}) {
    FunctionRunner runner([](const Rows& x) { return x; });
    EXPECT_EQ(Verdict(runner, X({-1, 5}), max_rows), "probed");
    int64_t most = 0;
    for (const auto& shape : runner.shapes) {
      most = std::max(most, shape[0]);
    }
    EXPECT_EQ(most, std::clamp(max_rows, kMinProbeRows, kMaxProbeRows));
  }
}

TEST(BatchProbe, MakesTheSameRowsEachTime) {
  HostTensor first{
      .name = "", .type = TRITONSERVER_TYPE_FP32, .shape = {1, 4}, .bytes = {}, .strings = {}};
  HostTensor second = first;
  AppendRow(first, 4, 0, RowKind::kPlain, {}, 1);
  AppendRow(second, 4, 0, RowKind::kPlain, {}, 1);
  EXPECT_EQ(first.bytes, second.bytes);
  second.bytes.clear();
  AppendRow(second, 4, 1, RowKind::kWide, {}, 1);
  EXPECT_NE(first.bytes, second.bytes);
}

TEST(BatchProbe, KeepsIntegersWithinTheRangeOfTheirStyle) {
  for (const auto type :
       {TRITONSERVER_TYPE_INT64, TRITONSERVER_TYPE_INT32, TRITONSERVER_TYPE_UINT8}) {
    HostTensor tensor{.name = "", .type = type, .shape = {1, 100}, .bytes = {}, .strings = {}};
    AppendRow(tensor, 100, 0, RowKind::kHuge, {.min = 1, .max = 9}, 1);
    const uint32_t size = ElementByteSize(type);
    ASSERT_EQ(tensor.bytes.size(), 100 * size);
    for (uint64_t e = 0; e < 100; ++e) {
      const int value = std::stoi(row_compare::IntegerText(size, tensor.bytes.data(), e));
      EXPECT_GE(value, 1);
      EXPECT_LE(value, 9);
    }
  }
}

TEST(RowCompare, ReadsAndWritesSixteenBits) {
  for (const float value : {0.0F, 1.0F, -2.5F, 100.0F, 6.103515625e-05F}) {
    EXPECT_EQ(FromHalf(ToHalf(value)), value);
  }
  EXPECT_EQ(FromHalf(ToHalf(1e9F)), 65504);
  EXPECT_TRUE(std::isinf(FromHalf(0x7C00)));
  EXPECT_EQ(FromBfloat16(ToBfloat16(1.5F)), 1.5F);
}

TEST(RowCompare, TreatsEqualInfinitiesAndNansAsEqual) {
  const auto tensor = [](std::vector<float> values) {
    HostTensor made{
        .name = "", .type = TRITONSERVER_TYPE_FP32, .shape = {1, 2}, .bytes = {}, .strings = {}};
    for (const float value : values) {
      row_samples::Append(made.bytes, value);
    }
    return made;
  };
  const float infinity = HUGE_VALF;
  EXPECT_FALSE(CompareRows(tensor({NAN, infinity}), 0, tensor({-NAN, infinity}), 0, 2));
  EXPECT_TRUE(CompareRows(tensor({1, infinity}), 0, tensor({1, -infinity}), 0, 2));
  EXPECT_TRUE(CompareRows(tensor({1, NAN}), 0, tensor({1, 1}), 0, 2));
  const auto difference = CompareRows(tensor({1, 2}), 0, tensor({1, 3}), 0, 2);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->element, 1u);
  EXPECT_EQ(difference->left, "2.000000");
  EXPECT_EQ(difference->right, "3.000000");
}

}  // namespace
}  // namespace nereid::backend
