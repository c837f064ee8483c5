// SPDX-License-Identifier: Apache-2.0
// O-2, O-3 and O-5 of docs/scheduling.md.
#include "schedule/service_times.h"

#include <gtest/gtest.h>

namespace nereid::schedule {
namespace {

constexpr uint64_t kMs = 1'000'000;

class ServiceTimesTest : public testing::Test {
 protected:
  void Make(size_t max_items, size_t instances) {
    times_ = std::make_unique<ServiceTimes>(max_items);
    times_->SwitchOn();
    for (size_t i = 0; i < instances; ++i) times_->AddInstance(i);
  }
  void Take(size_t instance, size_t requests, bool leaves_others) {
    times_->NoteTaken(
        instance,
        {.request_count = requests, .item_count = requests, .leaves_others = leaves_others},
        now_ns_);
  }
  // Executes so many batches one after another on the first instance.
  void Execute(int count, uint64_t ms, size_t requests, bool leaves_others) {
    for (int i = 0; i < count; ++i) {
      Take(0, requests, leaves_others);
      now_ns_ += ms * kMs;
      times_->NoteEnded(0, now_ns_);
    }
  }
  // In milliseconds.
  uint64_t UntilStart(size_t ahead) const { return times_->UntilStartNs(ahead, now_ns_) / kMs; }
  uint64_t UntilResponse(size_t ahead) const {
    return times_->UntilResponseNs(ahead, now_ns_) / kMs;
  }

  uint64_t now_ns_ = 1'000 * kMs;
  std::unique_ptr<ServiceTimes> times_;
};

TEST_F(ServiceTimesTest, ExpectsNothingOfAModelThatHasExecutedNothing) {
  Make(0, 1);
  Take(0, 1, true);
  EXPECT_EQ(UntilResponse(1000), 0u);
}

TEST_F(ServiceTimesTest, LetsARequestThatCanRunAtOnceRunHoweverSlowTheModelWas) {
  Make(0, 2);
  Execute(20, 5000, 1, true);
  Take(0, 1, true);
  EXPECT_EQ(UntilResponse(0), 0u);
}

TEST_F(ServiceTimesTest, CountsWhatIsLeftOfTheExecutionsInProgress) {
  Make(0, 2);
  Execute(20, 100, 1, true);
  Take(0, 1, true);
  now_ns_ += 30 * kMs;
  Take(1, 1, true);
  now_ns_ += 50 * kMs;
  EXPECT_EQ(UntilStart(0), 20u);
  // 20 until the first is idle, 100 of its own, an eighth in reserve.
  EXPECT_EQ(UntilResponse(0), 135u);
}

TEST_F(ServiceTimesTest, TakesAnExecutionThatIsAboutToEndForAnIdleInstance) {
  Make(0, 1);
  Execute(20, 100, 1, true);
  Take(0, 1, true);
  now_ns_ += 95 * kMs;
  EXPECT_EQ(UntilResponse(0), 0u);
  EXPECT_GT(UntilResponse(1), 200u);
  now_ns_ += 10 * kMs;
  EXPECT_EQ(UntilResponse(0), 0u);
  now_ns_ += 20 * kMs;
  EXPECT_GT(UntilResponse(0), 100u);
}

TEST_F(ServiceTimesTest, SharesTheQueueAmongTheInstances) {
  Make(0, 4);
  Execute(20, 100, 1, true);
  for (size_t i = 0; i < 4; ++i) Take(i, 1, true);
  EXPECT_EQ(UntilStart(0), 100u);
  EXPECT_EQ(UntilStart(8), 300u);
}

TEST_F(ServiceTimesTest, CountsInBatchesAsLargeAsTheyGetUnderLoad) {
  Make(8, 1);
  Execute(20, 100, 4, true);
  Take(0, 4, true);
  EXPECT_EQ(UntilStart(3), 100u);
  EXPECT_EQ(UntilStart(8), 300u);
}

TEST_F(ServiceTimesTest, ExpectsFullBatchesUntilOneHasLeftOthersWaiting) {
  Make(8, 1);
  Execute(20, 100, 1, false);
  Take(0, 1, false);
  EXPECT_EQ(UntilStart(15), 200u);
}

TEST_F(ServiceTimesTest, TakesLoadedExecutionsForWhatComesNextWhileItRemembersThem) {
  Make(8, 1);
  Execute(20, 100, 8, true);
  Execute(5, 10, 1, false);
  Take(0, 1, false);
  EXPECT_EQ(UntilStart(0), 100u);
  now_ns_ += 10 * kMs;
  times_->NoteEnded(0, now_ns_);
  Execute(20, 10, 1, false);
  Take(0, 1, false);
  EXPECT_LT(UntilStart(0), 20u);
}

TEST_F(ServiceTimesTest, DoesNotTakeOneExecutionThatHangsForTheRule) {
  Make(0, 1);
  Execute(50, 5, 1, false);
  Execute(1, 10'000, 1, true);
  Take(0, 1, true);
  EXPECT_LT(UntilResponse(6), 15'000u);
}

TEST_F(ServiceTimesTest, ExpectsAnOverdueExecutionToTakeAsMuchLongerAgain) {
  Make(0, 1);
  Execute(20, 100, 1, true);
  Take(0, 1, true);
  now_ns_ += 350 * kMs;
  EXPECT_EQ(UntilStart(0), 250u);
}

TEST_F(ServiceTimesTest, KeepsMoreInReserveWhereExecutionsDiffer) {
  Make(0, 1);
  for (int i = 0; i < 50; ++i) Execute(1, i % 2 == 0 ? 60 : 140, 1, true);
  Take(0, 1, true);
  EXPECT_GT(UntilResponse(0), 280u);
}

TEST_F(ServiceTimesTest, ForgetsInstancesThatLeave) {
  Make(0, 2);
  Execute(20, 100, 1, true);
  Take(0, 1, true);
  EXPECT_EQ(UntilStart(0), 0u);
  times_->RetireInstance(1);
  EXPECT_EQ(UntilStart(0), 100u);
  EXPECT_EQ(times_->instance_count(), 1u);
  times_->AddInstance(1);
  EXPECT_EQ(UntilStart(0), 0u);
}

TEST_F(ServiceTimesTest, IgnoresAnExecutionThatBeganBeforeItWasSwitchedOn) {
  Make(0, 1);
  EXPECT_EQ(times_->NoteEnded(0, now_ns_).duration_ns, 0u);
  EXPECT_EQ(times_->executing_count(), 0u);
}

}  // namespace
}  // namespace nereid::schedule
