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
          if (hook_) hook_(batch);
        }));
    ASSERT_TRUE(pool_->Start(std::move(instances)).ok());
  }
  void EnqueueOnReactor() {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {16});
    request->round = &rounds_;
    Enqueue(*pool_, line_, std::move(request));
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
  static base::TimePoint Soon() { return std::chrono::steady_clock::now() + 1min; }

  core::FakeSink sink_;
  core::FakeRounds rounds_;
  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {16});
  Line line_;
  TestContext context_;
  core::FakeInstance::Hook hook_;         // for executions; confined to their thread
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
  core::FakeRounds other_rounds;
  bool is_first = true;
  hook_ = [&](std::span<core::RequestPtr>) {
    if (!std::exchange(is_first, false)) return;
    std::thread([&] {
      core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {16});
      request->round = &other_rounds;
      Enqueue(*pool_, line_, std::move(request));
    }).join();
  };
  EnqueueOnReactor();
  EXPECT_EQ(threads_, std::vector<std::thread::id>(2, std::this_thread::get_id()));
  other_rounds.EndRound();
  EXPECT_EQ(threads_.size(), 2u) << "nothing is left for the other reactor's round";
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
