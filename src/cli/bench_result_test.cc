// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_result.h"

#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_report.h"
#include "cli/bench_tables.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Estimate About(double value, double spread = 0.001) {
  return EstimateOf({value * (1 - spread), value, value * (1 + spread)}, {3});
}

LevelResult Level(double load, double rate, double p99_us, bool is_open = false) {
  LevelResult level{.is_open = is_open, .load = load, .seconds = 3, .succeeded = 9000};
  level.rate = About(rate);
  for (const double share : {0.5, 0.8, 0.9, 1.0, 2.0}) {
    level.quantiles_us.push_back(About(p99_us * share));
  }
  return level;
}

BenchResult RunOf(std::vector<LevelResult> levels) {
  BenchResult result;
  result.model = "m";
  result.protocol = "HTTP";
  result.levels = std::move(levels);
  return result;
}

std::string VerdictText(const BenchResult& before, const BenchResult& after) {
  return VerdictOf(before, after, CompareResults(before, after));
}

// A result with all members set to something.
BenchResult RandomResult(unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> number(3, 4);
  const auto estimate = [&] {
    std::vector<double> samples;
    for (size_t i = random() % 4; i > 0; --i) samples.push_back(number(random));
    return EstimateOf(samples, {samples.size()});
  };
  BenchResult result = RunOf({});
  result.version = "3";
  result.server = "nereid \"2.51\"\n";
  result.started = "2026-01-01T00:00:00Z";
  result.inputs = "x FP32 [é]";
  result.batch_size = static_cast<int64_t>(random());
  for (size_t i = random() % 4; i > 0; --i) {
    LevelResult level = Level(number(random), number(random), number(random), random() % 2 == 0);
    level.rate = estimate();
    for (Estimate& quantile : level.quantiles_us) quantile = estimate();
    level.errors["<timeout> é"] = random();
    level.unfinished = random();
    level.mean_us = number(random);
    level.max_us = number(random);
    level.busy = 0.25;
    if (random() % 2 == 0) level.server = ServerShare{number(random), number(random), 3.5, 7, 9};
    level.moments.push_back({.round = 2, .rate = number(random), .p50_us = 1.5, .p99_us = 0});
    result.levels.push_back(std::move(level));
  }
  return result;
}

TEST(BenchJson, WhatIsSavedIsReadAgainToTheLastDigit) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const BenchResult result = RandomResult(seed);
    const std::string text = WriteJson(BenchJson(result));
    rapidjson::Document document;
    ASSERT_TRUE(ParseJson(text, document)) << text;
    const auto again = ReadBenchJson(document);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(WriteJson(BenchJson(*again)), text);
    EXPECT_EQ(again->failed(), result.failed());
    EXPECT_EQ(again->batch_size, result.batch_size);
    // With itself, a run has all its levels in common.
    EXPECT_EQ(CompareResults(result, *again).size(), result.levels.size());
    EXPECT_EQ(BenchReport(*again, &result), BenchReport(result, &*again));
  }
}

TEST(BenchJson, AnUnknownMarginIsNullForOtherPrograms) {
  BenchResult result = RunOf({Level(1, 10, 10)});
  result.levels[0].rate = EstimateOf({5}, {1});
  const std::string text = WriteJson(BenchJson(result));
  EXPECT_THAT(text, HasSubstr("\"requests_per_s\":{\"value\":5.0,\"margin\":null"));
  EXPECT_THAT(text, Not(HasSubstr("Infinity")));
}

TEST(BenchJson, OtherFilesAreRefusedOrReadWithoutHarm) {
  for (const char* text :
       {"[]", "{}", "null", R"({"nereid_bench":2})", R"({"nereid_bench":"1"})"}) {
    rapidjson::Document document;
    ASSERT_TRUE(ParseJson(text, document));
    EXPECT_THAT(std::string(ReadBenchJson(document).status().message()),
                HasSubstr("no result that 'nereid bench --save' has written"));
  }
  for (const char* text :
       {R"({"nereid_bench":1})", R"({"nereid_bench":1,"levels":{}})",
        R"({"nereid_bench":1,"levels":[1,null,[],{},{"latency_us":[]},{"intervals":[{}]}]})",
        R"({"nereid_bench":1,"batch_size":-1,"levels":[{"mode":"open","rate":1e300,
            "requests_per_s":{"value":5e-324},"latency_us":{"p50":{"value":-1,"margin":"x"}}}]})"}) {
    rapidjson::Document document;
    ASSERT_TRUE(ParseJson(text, document)) << text;
    const auto result = ReadBenchJson(document);
    ASSERT_TRUE(result.ok());
    EXPECT_THAT(BenchReport(*result, &*result), HasSubstr("</html>"));
    EXPECT_FALSE(LevelTable(*result).Render(0, false).empty());
  }
}

TEST(BenchVerdict, ComparesWhatBothRunsHaveMeasured) {
  const BenchResult before = RunOf({Level(1, 100, 10), Level(8, 200, 20), Level(8, 200, 20, true)});
  const BenchResult same = RunOf({Level(8, 200, 20), Level(1, 100, 10), Level(64, 1, 1)});
  EXPECT_EQ(CompareResults(before, same).size(), 2U);
  EXPECT_EQ(VerdictText(before, same), "No difference beyond the noise of these measurements.");
  EXPECT_EQ(VerdictText(before, RunOf({Level(2, 1, 1)})),
            "The two runs have no level of load in common.");
}

TEST(BenchVerdict, SaysWhetherTheSecondRunIsBetter) {
  const BenchResult before = RunOf({Level(1, 100, 10), Level(8, 200, 20)});
  EXPECT_EQ(VerdictText(before, RunOf({Level(1, 150, 10), Level(8, 200, 20)})),
            "Better at 1 of 2 levels, worse at none.");
  EXPECT_EQ(VerdictText(before, RunOf({Level(1, 100, 10), Level(8, 200, 10)})),
            "Better at 1 of 2 levels, worse at none.");
  EXPECT_EQ(VerdictText(before, RunOf({Level(1, 90, 10), Level(8, 200, 30)})),
            "Worse at 2 of 2 levels, better at none.");
  EXPECT_EQ(VerdictText(before, RunOf({Level(1, 120, 20), Level(8, 200, 20)})),
            "Better in something at 1 of 2 levels, worse in something at 1.");
}

TEST(BenchVerdict, WarnsOfOtherDifferencesButNotOfTimeAndPlace) {
  const BenchResult before = RunOf({Level(1, 100, 10)});
  BenchResult after = before;
  after.url = "http://there";
  after.started = "later";
  EXPECT_THAT(VerdictText(before, after), Not(HasSubstr("Beware")));
  after.protocol = "gRPC";
  after.batch_size = 8;
  EXPECT_THAT(VerdictText(before, after), HasSubstr(" Beware: protocol differs ('HTTP', 'gRPC')."));
  EXPECT_THAT(VerdictText(before, after), HasSubstr(" Beware: the batch size differs (1, 8)."));
}

TEST(BenchTables, ShowWhatIsKnownAndADashForWhatIsNot) {
  BenchResult result = RunOf({Level(16, 1234, 5000), Level(0.5, 0.0123, 0, true)});
  result.levels[0].errors = {{"a\nb", 2}, {"c", 1}};
  result.levels[0].server = ServerShare{.queue_us = 0, .compute_us = 1500, .batch = 3.25};
  EXPECT_EQ(LevelTable(result).Render(0, false),
            "LOAD             REQ/S  95 % SURE      P50      P90      P95      P99  ERRORS  QUEUE"
            "  COMPUTE  BATCH\n"
            "concurrency 16    1234    ± 0.2 %  2.50 ms  4.00 ms  4.50 ms  5.00 ms       3      -"
            "  1.50 ms   3.25\n"
            "0.5 requests/s  0.0123    ± 0.2 %        -        -        -        -       0      -"
            "        -      -\n");
  EXPECT_EQ(ErrorTable(result).Render(0, false),
            "LOAD            COUNT  ERROR\n"
            "concurrency 16      2  a b\n"
            "concurrency 16      1  c\n");
}

TEST(BenchTables, AComparisonCallsAHigherRateAndALowerLatencyBetter) {
  const BenchResult before = RunOf({Level(1, 100, 1000)});
  const BenchResult after = RunOf({Level(1, 150, 2000)});
  const auto levels = CompareResults(before, after);
  const Table table = ComparisonTable(levels);
  ASSERT_EQ(table.rows().size(), 3U);
  EXPECT_EQ(table.rows()[0].back().text, "better");
  EXPECT_EQ(table.rows()[1].back().text, "worse");
  EXPECT_EQ(table.rows()[2].back().text, "worse");
  EXPECT_THAT(table.rows()[0][4].text, testing::StartsWith("+50.0 % ± "));
}

TEST(BenchTables, ChangesHaveTheirMarginUnlessItSaysNothing) {
  EXPECT_EQ(ChangeText({.change = 0.123, .margin = 0.02}), "+12.3 % ± 2.0 %");
  EXPECT_EQ(ChangeText({.change = -0.5, .margin = INFINITY}), "-50.0 %");
  EXPECT_EQ(ChangeText({.change = 0, .margin = 11}), "+0.0 % ± over 1000 %");
  EXPECT_EQ(MarginText(EstimateOf({5}, {1})), "-");
  EXPECT_EQ(MarginText({}), "-");
}

TEST(BenchWarnings, SayWhatMakesTheFiguresLessThanTheySeem) {
  EXPECT_THAT(BenchWarnings(RunOf({Level(1, 100, 10)})), IsEmpty());
  BenchResult result = RunOf({Level(100, 96, 10, true)});
  result.levels[0].busy = 0.95;
  result.levels[0].unfinished = 4;
  result.levels[0].succeeded = 299;
  EXPECT_THAT(BenchWarnings(result),
              ElementsAre(HasSubstr("95 % of the time"), HasSubstr("96.0 requests/s succeeded"),
                          HasSubstr("4 requests had no response"), HasSubstr("p99 of 299")));
  result.levels[0].succeeded = 0;
  EXPECT_THAT(BenchWarnings(result), ElementsAre(HasSubstr("no request succeeded in 3 s")));
  EXPECT_THAT(BenchWarnings(RunOf({Level(100, 98, 10, true)})), IsEmpty());
}

TEST(BenchReport, NamesAndErrorsOfServersAreNoMarkup) {
  const std::string evil = "<script>x</script>\"";
  BenchResult result = RunOf({Level(1, 100, 10)});
  for (std::string* text :
       {&result.model, &result.version, &result.protocol, &result.server, &result.url,
        &result.started, &result.machine, &result.inputs, &result.distribution}) {
    *text = evil;
  }
  result.levels[0].errors[evil] = 1;
  BenchResult before = result;
  before.server = "<b>";
  const std::string page = BenchReport(result, &before);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("<h2>Errors</h2>"));
  EXPECT_THAT(page, HasSubstr("Compared with the earlier run"));
}

TEST(BenchReport, AComparisonWithoutCommonLevelsHasNoTableOfThem) {
  const BenchResult before = RunOf({Level(2, 100, 10)});
  const std::string page = BenchReport(RunOf({Level(1, 100, 10)}), &before);
  EXPECT_THAT(page, HasSubstr("no level of load in common"));
  EXPECT_THAT(page, Not(HasSubstr("Compared with the earlier run")));
}

TEST(HtmlTable, TextsAreEscapedAndStylesBecomeClasses) {
  Table table({{.title = "<A>"}, {.title = "N", .is_number = true}});
  table.Add({"a & b", {"1", Style::kBad}});
  EXPECT_EQ(HtmlTable(table, "of <A>"),
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"of "
            "&lt;A&gt;\"><table><tr><th class=\"left\">&lt;A&gt;</th><th>N</th></tr>\n"
            "<tr><td class=\" left wide\">a &amp; b</td><td class=\"bad number\">1</td></tr>\n"
            "</table></div>\n");
}

}  // namespace
}  // namespace nereid::cli
