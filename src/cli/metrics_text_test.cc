// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

TEST(MetricsText, SamplesHaveLabelsAndWhatTheirFamilySays) {
  const auto samples = ReadMetrics(
      "# HELP requests How many there were\n"
      "# TYPE requests counter\n"
      "requests{model=\"a\",path=\"x\\\"\\\\\\n,}\"} 12 1700000000\n"
      "plain 0.5\r\n"
      "empty{} NaN\n");
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_EQ(samples[0].name, "requests");
  EXPECT_EQ(samples[0].type, "counter");
  EXPECT_EQ(samples[0].help, "How many there were");
  EXPECT_THAT(samples[0].labels, ElementsAre(Pair("model", "a"), Pair("path", "x\"\\\n,}")));
  EXPECT_EQ(samples[0].value, "12");
  EXPECT_EQ(samples[0].label("model"), "a");
  EXPECT_EQ(samples[0].label("other"), "");
  EXPECT_EQ(samples[1].value, "0.5");
  EXPECT_EQ(samples[2].value, "NaN");
}

TEST(MetricsText, LinesOfAHistogramBelongToItsFamily) {
  const auto samples = ReadMetrics(
      "# TYPE time histogram\n"
      "time_bucket{le=\"1\"} 2\n"
      "time_sum 3\n"
      "time_count 2\n");
  ASSERT_THAT(samples, SizeIs(3));
  for (const MetricSample& sample : samples) EXPECT_EQ(sample.type, "histogram");
}

TEST(MetricsText, WhatIsOfAnotherFormIsSkipped) {
  EXPECT_THAT(ReadMetrics("\n<html>\nname\nname{a=1} 2\nname{a=\"1} 2\n{} 1\nname{a=\"1\"\n"),
              SizeIs(0));
}

}  // namespace
}  // namespace nereid::cli
