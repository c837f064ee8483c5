// SPDX-License-Identifier: Apache-2.0
#include "config/isolation.h"

#include <gtest/gtest.h>

namespace nereid::config {
namespace {

ModelConfig With(const char* value) {
  ModelConfig config;
  config.name = "m";
  config.parameters["isolation"] = value;
  return config;
}

TEST(IsIsolated, IsWhatTheParameterSays) {
  EXPECT_TRUE(IsIsolated(With("process")).value());
  EXPECT_FALSE(IsIsolated(With("none"), "process").value());
}

TEST(IsIsolated, IsTheDefaultWithoutTheParameter) {
  EXPECT_FALSE(IsIsolated(ModelConfig()).value());
  EXPECT_TRUE(IsIsolated(ModelConfig(), "process").value());
}

TEST(IsIsolated, RefusesOtherValues) {
  EXPECT_EQ(IsIsolated(With("thread")).status().message(),
            "parameter 'isolation' of model 'm' must be 'process' or 'none', not 'thread'");
}

}  // namespace
}  // namespace nereid::config
