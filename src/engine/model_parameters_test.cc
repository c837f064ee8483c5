// SPDX-License-Identifier: Apache-2.0
#include "engine/model_parameters.h"

#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

config::ModelConfig With(std::map<std::string, std::string> parameters) {
  config::ModelConfig config;
  config.name = "m";
  config.parameters = std::move(parameters);
  return config;
}

TEST(ModelParameters, SayWhetherConcurrencyAdapts) {
  EXPECT_TRUE(*AdaptsConcurrency(With({}), true));
  EXPECT_FALSE(*AdaptsConcurrency(With({}), false));
  EXPECT_FALSE(*AdaptsConcurrency(With({{"adaptive_concurrency", "false"}}), true));
  EXPECT_TRUE(*AdaptsConcurrency(With({{"adaptive_concurrency", "true"}}), false));
  EXPECT_EQ(AdaptsConcurrency(With({{"adaptive_concurrency", "on"}}), false).status().message(),
            "model 'm': parameter 'adaptive_concurrency' is 'on'; expected 'true' or 'false'");
}

TEST(ModelParameters, LimitWhatACallerMayTake) {
  EXPECT_EQ(*CallerLimitsOf(With({})), core::CallerLimits());
  const core::CallerLimits limits = *CallerLimitsOf(With({{"caller_requests_per_second", "2.5"},
                                                          {"caller_bytes_per_second", "1000000"},
                                                          {"caller_in_flight", "4"}}));
  EXPECT_EQ(limits.requests_per_s, 2.5);
  EXPECT_EQ(limits.bytes_per_s, 1e6);
  EXPECT_EQ(limits.in_flight, 4u);
  for (const char* text : {"", "0", "-1", "x", "3 ", "nan", "inf"}) {
    EXPECT_FALSE(CallerLimitsOf(With({{"caller_requests_per_second", text}})).ok()) << text;
    EXPECT_FALSE(CallerLimitsOf(With({{"caller_in_flight", text}})).ok()) << text;
  }
}

}  // namespace
}  // namespace nereid::engine
