// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/system_limits.h"
#include "base/thread.h"
#include "core/testing/fakes.h"
#include "schedule/testing/context.h"
#include "schedule/testing/line.h"

namespace nereid::schedule {
namespace {

using namespace std::chrono_literals;

// An instance that may run on any thread, and a reactor, played by the test's thread.
class InstancePoolTest : public testing::Test {
 protected:
  void Start(InstancePoolOptions options) {
    options.inline_budget = 1h;
    options.idle_thread_lifetime = 1h;
    pool_.emplace(*model_, line_, context_.Get(), std::move(options));
    std::vector<NewInstance> instances;
    instances.emplace_back(std::make_unique<core::FakeInstance>(
        "instance", true, [this](std::span<core::RequestPtr> batch) {
          threads_.push_back(std::this_thread::get_id());
          if (const auto hook = std::exchange(hook_, {})) hook(batch);
        }));
    ASSERT_TRUE(pool_->Start(std::move(instances)).ok());
  }
  void EnqueueOnReactor() { EnqueueOn(rounds_); }
  void EnqueueOn(core::FakeRounds& rounds) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {16});
    request->round = &rounds;
    Enqueue(*pool_, line_, std::move(request));
  }
  // A request arrives on another reactor while the test's executes one.
  void MeetOnce() {
    hook_ = [this](std::span<core::RequestPtr>) {
      std::thread([this] { EnqueueOn(other_rounds_); }).join();
    };
    EnqueueOnReactor();
  }
  void EnqueueUntilItIsKnownToBeQuick() {
    for (size_t i = 1; i <= 40; ++i) {
      EnqueueOnReactor();
      rounds_.EndRound();
      ASSERT_TRUE(sink_.WaitForGone(i));
      ASSERT_TRUE(pool_->WaitUntilAsleepForTest(Soon()));
    }
    threads_.clear();
  }
  // The execution in which the reactors meet takes long, but the many after it are brief.
  void MeetUntilItIsKnownToBeBrief() {
    MeetOnce();
    other_rounds_.EndRound();
    for (int i = 0; i < 100; ++i) EnqueueOnReactor();
    threads_.clear();
  }
  static base::TimePoint Soon() { return std::chrono::steady_clock::now() + 1min; }

  core::FakeSink sink_;
  core::FakeRounds rounds_;
  core::FakeRounds other_rounds_;
  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {16});
  Line line_;
  TestContext context_;
  core::FakeInstance::Hook hook_;         // for the next execution; confined to their thread
  std::vector<std::thread::id> threads_;  // of the executions; confined to them
  std::optional<InstancePool> pool_;
};

TEST_F(InstancePoolTest, AQuickInstanceRunsAtOnceOnTheReactor) {
  Start({});
  EnqueueUntilItIsKnownToBeQuick();
  EnqueueOnReactor();
  EXPECT_EQ(threads_, std::vector<std::thread::id>{std::this_thread::get_id()});
}

TEST_F(InstancePoolTest, WhatArrivesInARoundRunsAfterIt) {
  Start({.collects_rounds = true});
  EnqueueUntilItIsKnownToBeQuick();
  EnqueueOnReactor();
  EnqueueOnReactor();
  EXPECT_TRUE(threads_.empty());
  rounds_.EndRound();
  EXPECT_EQ(threads_, std::vector<std::thread::id>(2, std::this_thread::get_id()));
}

TEST_F(InstancePoolTest, WhatAnotherReactorBringsMeanwhileRunsRightAfter) {
  Start({});
  EnqueueUntilItIsKnownToBeQuick();
  MeetOnce();
  EXPECT_EQ(threads_, std::vector<std::thread::id>(2, std::this_thread::get_id()));
  other_rounds_.EndRound();
  EXPECT_EQ(threads_.size(), 2u) << "nothing is left for the other reactor's round";
}

TEST_F(InstancePoolTest, AReactorWaitsForAnotherThatExecutesWhatIsBrief) {
  if (base::AvailableCpus() < 2) GTEST_SKIP() << "reactors share the processor";
  Start({.arrival_patience = 1h});
  EnqueueUntilItIsKnownToBeQuick();
  MeetUntilItIsKnownToBeBrief();
  std::promise<void> entered;
  std::promise<void> leave;
  hook_ = [&](std::span<core::RequestPtr>) {
    entered.set_value();
    leave.get_future().wait();
  };
  std::thread first([this] { EnqueueOnReactor(); });
  entered.get_future().wait();
  std::thread second([&] {
    leave.set_value();
    EnqueueOn(other_rounds_);
  });
  const std::vector<std::thread::id> own = {first.get_id(), second.get_id()};
  first.join();
  second.join();
  EXPECT_EQ(threads_, own);
}

TEST_F(InstancePoolTest, AReactorThatHasWaitedLongEnoughLeavesItsRequest) {
  if (base::AvailableCpus() < 2) GTEST_SKIP() << "reactors share the processor";
  Start({.arrival_patience = 1ms});
  EnqueueUntilItIsKnownToBeQuick();
  MeetUntilItIsKnownToBeBrief();
  MeetOnce();  // it would wait for ever if it waited for the end of the other's execution
  EXPECT_EQ(threads_, std::vector<std::thread::id>(2, std::this_thread::get_id()));
}

TEST_F(InstancePoolTest, EndsAfterAReactorsLastExecutionThoughItsThreadWaits) {
  Start({});
  EnqueueUntilItIsKnownToBeQuick();
  std::promise<void> entered;
  std::promise<void> leave;
  hook_ = [&](std::span<core::RequestPtr>) {
    entered.set_value();
    leave.get_future().wait();
  };
  std::thread reactor([this] { EnqueueOnReactor(); });
  entered.get_future().wait();
  std::thread ender([this] { pool_->End(); });
  // The instance's thread was notified, has seen that the reactor executes, and waits again.
  EXPECT_TRUE(pool_->WaitUntilEndingForTest(Soon()));
  leave.set_value();
  reactor.join();
  ender.join();
}

}  // namespace
}  // namespace nereid::schedule
