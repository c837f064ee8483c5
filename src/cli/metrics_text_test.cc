// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_text.h"

#include <random>

#include <fmt/format.h>
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

TEST(MetricsText, EveryLabelAndValueIsReadAsItWasWritten) {
  std::mt19937 random(1);
  constexpr std::string_view kCharacters = "ab \\\"\n{},=#\té";
  for (int round = 0; round < 500; ++round) {
    std::string page = "# TYPE m gauge\n";
    std::vector<std::vector<std::pair<std::string, std::string>>> written;
    for (size_t line = random() % 5; line > 0; --line) {
      auto& labels = written.emplace_back();
      std::string text;
      for (size_t i = random() % 4; i > 0; --i) {
        std::string value;
        std::string escaped;
        for (size_t k = random() % 8; k > 0; --k) {
          const char c = kCharacters[random() % kCharacters.size()];
          value += c;
          if (c == '\\' || c == '"' || c == '\n') escaped += '\\';
          escaped += c == '\n' ? 'n' : c;
        }
        text += fmt::format("{}l{}=\"{}\"", text.empty() ? "" : ",", i, escaped);
        labels.emplace_back(fmt::format("l{}", i), value);
      }
      page += fmt::format("m{{{}}} {}\n", text, line);
    }
    const auto samples = ReadMetrics(page);
    ASSERT_EQ(samples.size(), written.size()) << page;
    for (size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(samples[i].labels, written[i]) << page;
      EXPECT_EQ(samples[i].value, fmt::format("{}", samples.size() - i));
      EXPECT_EQ(samples[i].type, "gauge");
    }
  }
}

TEST(MetricsText, SpacesThatTheFormatAllowsAreNoPartOfNamesAndValues) {
  const auto samples = ReadMetrics("m{ a = \"1\" , b=\"2\", } 3 \n\tm\t4\nm {c=\"5\"}\t6\t7\n");
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_THAT(samples[0].labels, ElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_EQ(samples[0].value, "3");
  EXPECT_EQ(samples[1].name, "m");
  EXPECT_EQ(samples[1].value, "4");
  EXPECT_EQ(samples[2].name, "m");
  EXPECT_THAT(samples[2].labels, ElementsAre(Pair("c", "5")));
  EXPECT_EQ(samples[2].value, "6");
}

TEST(MetricsText, AFamilyMayHaveTheNameThatLinesOfHistogramsHave) {
  const auto samples = ReadMetrics(
      "# TYPE queue_count gauge\nqueue_count 1\n# TYPE time summary\ntime_count 2\nx_sum 3\n");
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_EQ(samples[0].type, "gauge");
  EXPECT_EQ(samples[1].type, "summary");
  EXPECT_EQ(samples[2].type, "");
}

}  // namespace
}  // namespace nereid::cli
