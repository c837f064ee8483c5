// SPDX-License-Identifier: Apache-2.0
// The rules of docs/adr/0002, in its order.
#include "schedule/inline_policy.h"

#include <gtest/gtest.h>

namespace nereid::schedule {
namespace {

constexpr uint64_t kBudgetNs = 50'000;
constexpr uint64_t kQuickNs = 10'000;
constexpr InlineTraits kRuns{.runs = true};
constexpr InlineTraits kBegins{.begins = true};

constexpr std::chrono::nanoseconds kArrivalPatience(200'000);

const InlinePolicy kPolicy(std::chrono::nanoseconds(kBudgetNs), 2, kArrivalPatience);

InlineRecord After(InlineTraits traits, int executions, uint64_t duration_ns,
                   const InlinePolicy& policy = kPolicy) {
  InlineRecord record = policy.NewRecord(traits);
  for (int i = 0; i < executions; ++i) record.Account(duration_ns, 1);
  return record;
}

TEST(InlinePolicy, AReactorRunsOnlyAnInstanceThatMayRunOnAnyThread) {
  EXPECT_EQ(kPolicy.Choose(After(kRuns, 100, kQuickNs)), InlineChoice::kRun);
  EXPECT_EQ(kPolicy.Choose(After({}, 100, kQuickNs)), InlineChoice::kLeaveToThread);
}

TEST(InlinePolicy, AReactorRunsAnInstanceOnlyAfter32TimedExecutions) {
  EXPECT_EQ(kPolicy.Choose(After(kRuns, 31, kQuickNs)), InlineChoice::kLeaveToThread);
  EXPECT_EQ(kPolicy.Choose(After(kRuns, 32, kQuickNs)), InlineChoice::kRun);
}

TEST(InlinePolicy, AReactorRunsAnInstanceOnlyWhileTheAverageStaysWithinTheBudget) {
  InlineRecord record = After(kRuns, 100, kBudgetNs);
  EXPECT_EQ(kPolicy.Choose(record), InlineChoice::kRun);
  for (int i = 0; i < 20; ++i) record.Account(2 * kBudgetNs, 1);
  EXPECT_EQ(kPolicy.Choose(record), InlineChoice::kLeaveToThread);
  for (int i = 0; i < 20; ++i) record.Account(kQuickNs, 1);
  EXPECT_EQ(kPolicy.Choose(record), InlineChoice::kRun) << "it is quick again";
}

TEST(InlinePolicy, ABatchMayTakeTheBudgetOnceForEachOfItsRequestsUpToEightTimes) {
  const auto choice_after = [](uint64_t duration_ns, size_t requests) {
    InlineRecord record = kPolicy.NewRecord(kRuns);
    for (int i = 0; i < 100; ++i) record.Account(duration_ns, requests);
    return kPolicy.Choose(record);
  };
  EXPECT_EQ(choice_after(3 * kBudgetNs, 3), InlineChoice::kRun);
  EXPECT_EQ(choice_after(3 * kBudgetNs, 2), InlineChoice::kLeaveToThread);
  EXPECT_EQ(choice_after(8 * kBudgetNs, 100), InlineChoice::kRun);
  EXPECT_EQ(choice_after(9 * kBudgetNs, 100), InlineChoice::kLeaveToThread);
}

TEST(InlinePolicy, ABatchWhoseRequestsWereAllCancelledCountsAsOneExecution) {
  InlineRecord record = kPolicy.NewRecord(kRuns);
  for (int i = 0; i < 32; ++i) record.Account(kQuickNs, 0);
  EXPECT_EQ(kPolicy.Choose(record), InlineChoice::kRun);
}

TEST(InlinePolicy, ReactorsWaitForEachOtherOnlyWhileTheirOwnExecutionsAreBrief) {
  const auto waits_after = [](uint64_t own_ns, const InlinePolicy& policy = kPolicy) {
    InlineRecord record = After(kRuns, 100, kQuickNs);
    for (int i = 0; i < 100; ++i) record.AccountOwn(own_ns);
    return policy.may_wait_for(record);
  };
  EXPECT_FALSE(kPolicy.may_wait_for(After(kRuns, 100, 1'000))) << "it may be another's";
  EXPECT_TRUE(waits_after(1'000));
  EXPECT_TRUE(waits_after(4'000));
  EXPECT_FALSE(waits_after(5'000));
  EXPECT_FALSE(
      waits_after(1'000, InlinePolicy(std::chrono::nanoseconds(kBudgetNs), 1, kArrivalPatience)))
      << "with one processor, the other reactor would have to wait, too";
}

TEST(InlinePolicy, OneLongExecutionDoesNotMakeABriefModelALongOne) {
  InlineRecord record = After(kRuns, 100, kQuickNs);
  for (int i = 0; i < 100; ++i) record.AccountOwn(1'000);
  record.AccountOwn(10'000'000);
  EXPECT_TRUE(kPolicy.may_wait_for(record));
}

TEST(InlinePolicy, AReactorTurnsToItsSocketsAfterEightBudgets) {
  const InlineRecord quick = After(kRuns, 32, kQuickNs);
  EXPECT_EQ(kPolicy.round_ns(), 8 * static_cast<int64_t>(kBudgetNs));
  EXPECT_EQ(kPolicy.ChooseInRound(quick, 0), InlineChoice::kRun);
  EXPECT_EQ(kPolicy.ChooseInRound(quick, -1), InlineChoice::kLeaveToThread);
}

TEST(InlinePolicy, AReactorBeginsOnlyAnInstanceThatCanSplitAnExecution) {
  EXPECT_EQ(kPolicy.Choose(After(kBegins, 31, kQuickNs)), InlineChoice::kLeaveToThread);
  EXPECT_EQ(kPolicy.Choose(After(kBegins, 32, kQuickNs)), InlineChoice::kBegin);
}

TEST(InlinePolicy, AReactorBeginsAndWaitsForTwiceTheBudgetAtMost) {
  EXPECT_EQ(kPolicy.patience(), std::chrono::nanoseconds(2 * kBudgetNs));
  EXPECT_EQ(kPolicy.Choose(After(kBegins, 100, 2 * kBudgetNs)), InlineChoice::kBegin);
  EXPECT_EQ(kPolicy.Choose(After(kBegins, 100, 3 * kBudgetNs)), InlineChoice::kLeaveToThread);
}

TEST(InlinePolicy, AReactorMayBeginThoughTheTimeOfItsRoundIsOver) {
  EXPECT_EQ(kPolicy.ChooseInRound(After(kBegins, 32, kQuickNs), -1), InlineChoice::kBegin);
}

TEST(InlinePolicy, WithOneProcessorAReactorWaitsForNothing) {
  const InlinePolicy policy(std::chrono::nanoseconds(kBudgetNs), 1, kArrivalPatience);
  EXPECT_EQ(policy.Choose(After(kBegins, 32, kQuickNs, policy)), InlineChoice::kLeaveToThread);
  EXPECT_EQ(policy.Choose(After(kRuns, 32, kQuickNs, policy)), InlineChoice::kRun);
}

// The instance may have no thread, and no other thread could end the execution.
TEST(InlinePolicy, AnInstanceThatMayRunOnAnyThreadIsNotBegun) {
  constexpr InlineTraits kBoth{.runs = true, .begins = true};
  EXPECT_EQ(kPolicy.Choose(After(kBoth, 100, kQuickNs)), InlineChoice::kRun);
  EXPECT_EQ(kPolicy.Choose(After(kBoth, 100, 2 * kBudgetNs)), InlineChoice::kLeaveToThread);
}

TEST(InlinePolicy, AReactorThatHasMoreToReadWaitsForNothingBefore32RequestsHaveComeAlone) {
  ArrivalHistory arrivals;
  EXPECT_TRUE(arrivals.Note(/*is_alone=*/true));
  EXPECT_FALSE(arrivals.Note(/*is_alone=*/false));
  for (int i = 0; i < 32; ++i) EXPECT_FALSE(arrivals.Note(/*is_alone=*/true));
  EXPECT_TRUE(arrivals.Note(/*is_alone=*/true));
}

TEST(InlinePolicy, TheFirstExecutionsAreTimedExactly) {
  EXPECT_TRUE(After(kRuns, 31, kQuickNs).is_watched());
  EXPECT_FALSE(After(kRuns, 32, kQuickNs).is_watched());
  EXPECT_FALSE(After({}, 1, kQuickNs).is_watched()) << "no reactor may do anything with it";
}

TEST(InlinePolicy, AnExecutionThatTakesLongerThanTheBudgetCountsForAtMostTwiceTheBudget) {
  InlineRecord record = After(kRuns, 100, kQuickNs);
  record.Account(1000 * kBudgetNs, 1);
  EXPECT_EQ(kPolicy.Choose(record), InlineChoice::kRun);
}

TEST(InlinePolicy, TheNext256ExecutionsAfterASlowOneAreTimedExactly) {
  InlineRecord record = After(kRuns, 100, kQuickNs);
  record.Account(1000 * kBudgetNs, 1);
  for (int i = 0; i < 256; ++i) {
    ASSERT_TRUE(record.is_watched()) << i;
    record.Account(kQuickNs, 1);
  }
  EXPECT_FALSE(record.is_watched());
}

TEST(InlinePolicy, ASlowExecutionThatWasTimedExactlyCountsInFull) {
  InlineRecord record = After(kRuns, 100, kQuickNs);
  record.Account(1000 * kBudgetNs, 1);
  ASSERT_TRUE(record.is_watched());
  record.Account(1000 * kBudgetNs, 1);
  EXPECT_EQ(kPolicy.Choose(record), InlineChoice::kLeaveToThread);
}

TEST(InlinePolicy, AnInstanceThatIsTooSlowIsTimedExactlyUntilItIsQuickAgain) {
  InlineRecord record = After(kRuns, 1000, 3 * kBudgetNs);
  EXPECT_TRUE(record.is_watched());
}

TEST(InlinePolicy, OfAnExecutionThatWaitedForNothingTheProcessorsTimeCounts) {
  EXPECT_EQ(ExecutionNs(1000, {.cpu_ns = 500, .waits = 7}, {.cpu_ns = 800, .waits = 7}), 300u);
}

TEST(InlinePolicy, OfAnExecutionThatWaitedTheTimeOnTheClockCounts) {
  EXPECT_EQ(ExecutionNs(1000, {.cpu_ns = 500, .waits = 7}, {.cpu_ns = 800, .waits = 8}), 1000u);
}

TEST(InlinePolicy, AnExecutionTakesNoLongerThanPassesOnTheClock) {
  EXPECT_EQ(ExecutionNs(1000, {.cpu_ns = 500, .waits = 7}, {.cpu_ns = 9500, .waits = 7}), 1000u);
  EXPECT_EQ(Stopwatch(/*is_exact=*/false, 1000).PassedNs(1300), 300u);
  EXPECT_EQ(Stopwatch(/*is_exact=*/false, 1000).PassedNs(900), 0u) << "readings of two threads";
}

TEST(InlinePolicy, ABudgetOfNothingSwitchesItOff) {
  const InlinePolicy off(std::chrono::nanoseconds(0), 2, kArrivalPatience);
  EXPECT_EQ(off.Choose(After(kRuns, 100, 0, off)), InlineChoice::kLeaveToThread);
  EXPECT_EQ(off.Choose(After(kBegins, 100, 0, off)), InlineChoice::kLeaveToThread);
  EXPECT_FALSE(After(kRuns, 1, kQuickNs, off).is_watched());
}

}  // namespace
}  // namespace nereid::schedule
