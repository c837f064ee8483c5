// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/no_more_threads.h"
#include "core/testing/fakes.h"
#include "schedule/testing/context.h"
#include "schedule/testing/line.h"

namespace nereid::schedule {
namespace {

// A source whose requests all run together.
class Heap final : public WorkSource {
 public:
  void Push(core::RequestPtr request) { waiting_.push_back(std::move(request)); }

  bool HasWaiting() const override { return !waiting_.empty(); }
  BatchDecision Decide(size_t /*instance*/, uint64_t /*now_ns*/) override {
    return {.request_count = waiting_.size(), .look_again_at_ns = {}};
  }
  void Take(size_t /*instance*/, const BatchDecision& /*decision*/,
            std::vector<core::RequestPtr>& batch) override {
    for (core::RequestPtr& request : waiting_) batch.push_back(std::move(request));
    waiting_.clear();
  }

 private:
  std::vector<core::RequestPtr> waiting_;
};

// Instances that run on any thread, here mostly on the test's own.
class InstanceSetTest : public testing::Test {
 protected:
  ~InstanceSetTest() override {
    set_.EndThreads();
    set_.JoinThreads();
  }

  void Admit(size_t count) {
    PooledInstances made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(set_.Make(std::make_unique<core::FakeInstance>("instance", true, nullptr),
                               /*is_limited=*/false));
    }
    for (const auto& instance : made) admitted_.push_back(instance.get());
    base::MutexLock lock(set_.mutex());
    set_.Admit(std::move(made));
  }
  void Push() NEREID_REQUIRES(set_.mutex()) {
    source_.Push(core::MakeFakeRequest(*model_, sink_, {16}));
  }
  // Takes and executes what waits, as a reactor does; returns false if nothing waits.
  bool ExecuteHere() {
    PooledInstance* instance = nullptr;
    {
      base::MutexLock lock(set_.mutex());
      instance = set_.FindIdle();
      if (instance == nullptr || !set_.TakeBatch(*instance, base::NowNs())) return false;
    }
    set_.Execute(*instance);
    base::MutexLock lock(set_.mutex());
    set_.Account(*instance);
    return true;
  }
  static base::TimePoint Soon() {
    return std::chrono::steady_clock::now() + std::chrono::minutes(1);
  }
  static base::TimePoint Now() { return std::chrono::steady_clock::now(); }

  core::FakeSink sink_;
  TestContext context_;
  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {16});
  Heap source_;
  std::vector<const PooledInstance*> admitted_;
  InstanceSet set_{
      *model_,
      source_,
      context_.Get(),
      {.inline_budget = std::chrono::hours(1), .idle_thread_lifetime = std::chrono::hours(1)}};
};

TEST_F(InstanceSetTest, AnInstanceIsBusyFromTakingABatchToItsAccount) {
  Admit(1);
  PooledInstance* instance = nullptr;
  {
    base::MutexLock lock(set_.mutex());
    instance = set_.FindIdle();
    ASSERT_NE(instance, nullptr);
    EXPECT_FALSE(set_.TakeBatch(*instance, base::NowNs())) << "nothing waits";
    Push();
    EXPECT_TRUE(set_.TakeBatch(*instance, base::NowNs()));
    EXPECT_FALSE(set_.HasWaiting());
    EXPECT_EQ(set_.FindIdle(), nullptr);
  }
  EXPECT_FALSE(set_.Stop(Now())) << "it is to be executed";
  set_.Execute(*instance);
  EXPECT_TRUE(sink_.WaitForGone(1));
  base::MutexLock lock(set_.mutex());
  EXPECT_EQ(set_.FindIdle(), nullptr);
  set_.Account(*instance);
  EXPECT_EQ(set_.FindIdle(), instance);
}

TEST_F(InstanceSetTest, ABatchOfMoreThanIsWantedStaysWhereItIs) {
  Admit(1);
  base::MutexLock lock(set_.mutex());
  Push();
  Push();
  EXPECT_FALSE(set_.TakeBatch(*set_.FindIdle(), base::NowNs(), 1));
  EXPECT_TRUE(set_.HasWaiting());
  EXPECT_NE(set_.FindIdle(), nullptr);
  set_.WakeForWork();
}

TEST_F(InstanceSetTest, OneThreadIsStartedForWhatRunsTogether) {
  Admit(3);
  {
    base::MutexLock lock(set_.mutex());
    Push();
    set_.WakeForWork();
    Push();
    set_.WakeForWork();
  }
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_TRUE(set_.WaitUntilAsleepForTest(Soon()));
  // With an idle lifetime of an hour, a thread that was started is still there.
  base::MutexLock lock(set_.mutex());
  EXPECT_EQ(std::ranges::count_if(
                admitted_, [this](const PooledInstance* instance) NEREID_REQUIRES(
                               set_.mutex()) { return instance->thread.exists(set_.mutex()); }),
            1);
}

TEST_F(InstanceSetTest, ThreadsLeaveWorkToAReactorThatIsAboutToLookForIt) {
  Admit(1);
  for (int i = 0; i < 32; ++i) {
    {
      base::MutexLock lock(set_.mutex());
      Push();
    }
    ASSERT_TRUE(ExecuteHere());
  }
  base::MutexLock lock(set_.mutex());
  ASSERT_TRUE(set_.RunsInline());
  PooledInstance& instance = *set_.FindIdle();
  set_.ExpectRound();
  Push();
  set_.WakeForWork();
  EXPECT_TRUE(set_.IsLeftToReactor(instance));
  EXPECT_FALSE(instance.thread.exists(set_.mutex()));
  set_.EndRound();
  set_.WakeForWork();
  EXPECT_TRUE(instance.thread.exists(set_.mutex()));
}

TEST_F(InstanceSetTest, NothingRunsInlineBeforeThereAreInstances) {
  base::MutexLock lock(set_.mutex());
  EXPECT_FALSE(set_.RunsInline());
  EXPECT_EQ(set_.FindIdle(), nullptr);
  set_.WakeForWork();
}

TEST_F(InstanceSetTest, WorkWhoseThreadCannotBeStartedRunsWhenItCan) {
  Admit(1);
  ASSERT_TRUE(set_.Prepare().ok());
  {
    const base::NoMoreThreads limit;
    base::MutexLock lock(set_.mutex());
    Push();
    set_.WakeForWork();
    EXPECT_FALSE(admitted_[0]->thread.exists(set_.mutex()));
  }
  EXPECT_TRUE(sink_.WaitForGone(1)) << "nothing else happens that would start it";
}

TEST_F(InstanceSetTest, AThreadThatExistsDoesTheWorkOfOneThatCannotBeStarted) {
  Admit(2);
  ASSERT_TRUE(set_.Prepare().ok());
  PooledInstance* first = nullptr;
  {
    base::MutexLock lock(set_.mutex());
    Push();
    first = set_.FindIdle();
    ASSERT_TRUE(set_.TakeBatch(*first, base::NowNs()));
    Push();
    set_.WakeForWork();  // starts the thread of the second instance
  }
  EXPECT_TRUE(sink_.WaitForGone(1));
  set_.Execute(*first);
  {
    base::MutexLock lock(set_.mutex());
    set_.Account(*first);
  }
  ASSERT_TRUE(set_.WaitUntilAsleepForTest(Soon()));
  const base::NoMoreThreads limit;
  {
    base::MutexLock lock(set_.mutex());
    ASSERT_FALSE(first->thread.exists(set_.mutex()));
    Push();
    set_.WakeForWork();
  }
  EXPECT_TRUE(sink_.WaitForGone(3));
}

TEST_F(InstanceSetTest, StopsWhenEverythingHasRun) {
  Admit(2);
  {
    base::MutexLock lock(set_.mutex());
    for (int i = 0; i < 5; ++i) Push();
  }
  EXPECT_TRUE(set_.Stop(Soon()));
  EXPECT_EQ(sink_.final_count(), 5u);
  base::MutexLock lock(set_.mutex());
  EXPECT_TRUE(set_.is_stopping());
}

}  // namespace
}  // namespace nereid::schedule
