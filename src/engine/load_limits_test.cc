// SPDX-License-Identifier: Apache-2.0
#include "engine/load_limits.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

class LoadLimitsTest : public ::testing::Test {
 protected:
  static core::BudgetLimits Limits() {
    return core::ChooseLimits({.load_bytes = 2000, .load_instances = 8, .load_warm_up_runs = 20},
                              {.memory_bytes = uint64_t{1} << 30})
        .limits;
  }
  std::string Take(const service::LoadOptions& options, base::BudgetGrant& grant) {
    return std::string(TakeLoad("m", options, budgets_, grant).message());
  }
  std::string Take(const std::string& config) {
    base::BudgetGrant grant;
    return Take({.config = config, .files = {}}, grant);
  }

  core::Budgets budgets_{Limits()};
};

TEST_F(LoadLimitsTest, ConfigurationsMayAskForSomeInstances) {
  EXPECT_EQ(Take(R"({"name":"m","instance_group":[{"count":4},{"count":4}]})"), "");
  EXPECT_EQ(Take(R"({"name":"m","instance_group":[{"count":4},{"gpus":[0,1,2,3,4]}]})"),
            "the configuration in the load request for 'm' asks for 9 instances, the limit is 8 "
            "(--max-load-instances)");
}

TEST_F(LoadLimitsTest, ConfigurationsMayAskForSomeWarmUp) {
  EXPECT_EQ(Take(R"({"name":"m","model_warmup":[{"name":"a","count":19},{"name":"b"}]})"), "");
  EXPECT_EQ(Take(R"({"name":"m","model_warmup":[{"name":"a","count":20},{"name":"b"}]})"),
            "the configuration in the load request for 'm' asks for 21 executions to warm up, the "
            "limit is 20 (--max-load-warm-up-runs)");
}

TEST_F(LoadLimitsTest, WhatConfigurationsWarmUpWithHasToFitIntoMemory) {
  const auto with = [](const char* dims, const char* batch) {
    return fmt::format(
        R"({{"name":"m","model_warmup":[{{"name":"a","batch_size":{},"inputs":{{"x":{{)"
        R"("data_type":"TYPE_FP32","dims":{},"zero_data":true}}}}}}]}})",
        batch, dims);
  };
  EXPECT_EQ(Take(with("[100]", "3")), "");
  EXPECT_EQ(Take(with("[126]", "3")),
            "the configuration in the load request for 'm' asks for 2016 bytes to warm up, the "
            "limit is 2000 (--max-load-memory)");
  EXPECT_NE(Take(with("[2147483647]", "1")), "");
  EXPECT_NE(Take(with("[2147483647, 1073741824]", "65536")), "");
  EXPECT_EQ(Take(with("[9223372036854775807, 9223372036854775807]", "1")), "");  // left to the load
}

TEST_F(LoadLimitsTest, AllSamplesOfAWarmUpAreThereAtOnce) {
  const auto sample = [](const char* name, const char* dims) {
    return fmt::format(R"({{"name":"{}","batch_size":1,"inputs":{{"x":{{)"
                       R"("data_type":"TYPE_INT8","dims":{},"zero_data":true}}}}}})",
                       name, dims);
  };
  const auto both = [&](const char* first, const char* second) {
    return Take(fmt::format(R"({{"name":"m","model_warmup":[{},{}]}})", sample("a", first),
                            sample("b", second)));
  };
  EXPECT_EQ(both("[400]", "[600]"), "");
  EXPECT_EQ(both("[501]", "[750]"),
            "the configuration in the load request for 'm' asks for 2001 bytes to warm up, the "
            "limit is 2000 (--max-load-memory)");
}

TEST_F(LoadLimitsTest, StringsWithoutAFileHaveASizeAsWell) {
  const auto with = [&](const char* data) {
    return Take(fmt::format(R"({{"name":"m","model_warmup":[{{"name":"a","batch_size":1,"inputs":)"
                            R"({{"x":{{"data_type":"TYPE_STRING","dims":[1000],{}}}}}}}]}})",
                            data));
  };
  for (const char* const data : {R"("zero_data":true)", R"("random_data":true)"}) {
    EXPECT_EQ(with(data),
              "the configuration in the load request for 'm' asks for 8000 bytes to warm up, the "
              "limit is 2000 (--max-load-memory)");
  }
  EXPECT_EQ(with(R"("input_data_file":"x")"), "");
}

TEST_F(LoadLimitsTest, FaultyConfigurationsAreLeftToTheLoad) {
  EXPECT_EQ(Take("{"), "");
  EXPECT_EQ(Take(R"({"instance_group":7})"), "");
}

TEST_F(LoadLimitsTest, FilesOfAllLoadsInProgressShareTheMemory) {
  base::BudgetGrant first;
  base::BudgetGrant second;
  const service::LoadOptions half{.config = {}, .files = {{"1/model", std::string(1001, 'x')}}};
  EXPECT_EQ(Take(half, first), "");
  EXPECT_EQ(Take(half, second),
            "load requests in progress leave no room for 1001 bytes of 'm': the limit is 2000 "
            "(--max-load-memory)");
  first.Reset();
  EXPECT_EQ(Take(half, second), "");
  const service::LoadOptions huge{.config = {}, .files = {{"1/model", std::string(3000, 'x')}}};
  EXPECT_EQ(Take(huge, first),
            "the load request for 'm' brings 3000 bytes, the limit is 2000 (--max-load-memory)");
}

}  // namespace
}  // namespace nereid::engine
