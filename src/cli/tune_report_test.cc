// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/json.h"

namespace nereid::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// A search that has found 30 % more with two instances.
TuneResult Result() {
  const TuneScore before{.meets = true, .rate = 100, .p99_us = 9000, .concurrency = 4};
  const TuneScore after{.meets = true, .rate = 130, .p99_us = 9500, .concurrency = 8};
  TuneResult result{.model = "m",
                    .goal_us = 10000,
                    .seconds = 61.4,
                    .space = 64,
                    .outcome = {},
                    .text = "",
                    .patch = "--- a/m\n+++ b/m\n",
                    .describe = [](const TuneChoice& choice) {
                      return fmt::format("<{} instances>", choice.instances);
                    }};
  result.outcome.present = {{}, before, 2};
  result.outcome.best = {{.instances = 2}, after, 2};
  result.outcome.is_certain = true;
  result.outcome.trials = {
      {{}, before, 0},
      {{.instances = 9}, {.failure = "no <memory>"}, 1},
      {{.instances = 4}, {.meets = false, .rate = 90, .p99_us = 20000, .concurrency = 1}, 1},
      {{.instances = 2, .threads = 3, .max_batch = 8, .delay_us = 0}, after, 2}};
  return result;
}

TEST(TuneVerdict, SaysWhatIsGainedAndHowCertainThatIs) {
  TuneResult result = Result();
  EXPECT_EQ(TuneVerdict(result),
            "Best: <2 instances>: 130 requests/s, p99 9.50 ms with 8 in flight.\n"
            "As it is: 100 requests/s, p99 9.00 ms with 4 in flight.\n"
            "That is +30.0 %, in every one of the repeats.");
  result.outcome.is_certain = false;
  EXPECT_THAT(TuneVerdict(result), HasSubstr("+30.0 %, which is within the noise"));
}

TEST(TuneVerdict, AGoalThatOnlyTheBestMeetsIsNoPercentage) {
  TuneResult result = Result();
  result.outcome.present.score.meets = false;
  EXPECT_THAT(TuneVerdict(result), HasSubstr("Only the best one meets the goal of 10.0 ms."));
  EXPECT_THAT(TuneVerdict(result), Not(HasSubstr("%")));
  result.outcome.present.score = {.failure = "it does not load"};
  EXPECT_THAT(TuneVerdict(result), HasSubstr("As it is: it does not load."));
}

TEST(TuneVerdict, NothingIsAdvisedWhereNothingIsGained) {
  TuneResult result = Result();
  result.patch.clear();
  EXPECT_THAT(TuneVerdict(result), HasSubstr("as good as any that was tried"));
  result.outcome.best.score.meets = false;
  EXPECT_THAT(TuneVerdict(result),
              HasSubstr("No configuration has a p99 of 10.0 ms: the nearest is 9.50 ms"));
  result.outcome.best.score.failure = "no server";
  EXPECT_EQ(TuneVerdict(result), "No configuration could be measured: no server");
}

TEST(TuneJson, HasEachTrialWithTheSettingsThatItChanges) {
  const auto document = TuneJson(Result());
  EXPECT_EQ(TextOf(document, "model"), "m");
  EXPECT_EQ(document["goal_p99_us"].GetDouble(), 10000);
  EXPECT_TRUE(document["meets_goal"].GetBool());
  EXPECT_EQ(NumberOf(document, "choices"), 64U);
  const auto trials = ListOf(document, "trials");
  ASSERT_EQ(trials.Size(), 4U);
  EXPECT_EQ(MemberOf(trials[0], "instances"), nullptr);
  EXPECT_EQ(MemberOf(trials[0], "max_queue_delay_us"), nullptr);
  EXPECT_EQ(TextOf(trials[0], "stage"), "start");
  EXPECT_EQ(TextOf(trials[1], "error"), "no <memory>");
  EXPECT_EQ(MemberOf(trials[1], "requests_per_s"), nullptr);
  EXPECT_FALSE(trials[2]["meets_goal"].GetBool());
  EXPECT_EQ(WriteJson(trials[3]),
            R"({"configuration":"<2 instances>","instances":2,"threads":3,"max_batch_size":8,)"
            R"("max_queue_delay_us":0,"stage":"final","meets_goal":true,"requests_per_s":130.0,)"
            R"("p99_us":9500.0,"concurrency":8.0})");
}

TEST(TuneReport, IsAPageWithTheVerdictTheChangeAndAllTrials) {
  const std::string page = TuneReport(Result());
  EXPECT_THAT(page, HasSubstr("<h1>nereid tune m</h1>"));
  EXPECT_THAT(page, HasSubstr("That is +30.0 %"));
  EXPECT_THAT(page, HasSubstr("4 measurements in 61 s, of 64 possible configurations"));
  EXPECT_THAT(page, HasSubstr("no &lt;memory&gt;"));
  EXPECT_THAT(page, HasSubstr("&lt;9 instances&gt;"));
  EXPECT_THAT(page, HasSubstr("<pre tabindex=\"0\">--- a/m"));
  EXPECT_THAT(page, Not(HasSubstr("<memory>")));
  EXPECT_THAT(page, HasSubstr("goal: 10.0 ms"));
  TuneResult unchanged = Result();
  unchanged.patch.clear();
  EXPECT_THAT(TuneReport(unchanged), Not(HasSubstr("The change")));
}

}  // namespace
}  // namespace nereid::cli
