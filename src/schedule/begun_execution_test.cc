// SPDX-License-Identifier: Apache-2.0
// Executions that a reactor begins and, if they take long, the instance's thread ends.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/system_limits.h"
#include "base/thread.h"
#include "core/testing/fakes.h"
#include "schedule/batch_scheduler.h"
#include "schedule/testing/context.h"

namespace nereid::schedule {
namespace {

// Records which of its functions ran, and whether on the reactor's thread. End completes the
// requests that are left.
class TwoPartInstance final : public core::Instance {
 public:
  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return false; }
  bool begins_on_any_thread() const override { return true; }
  void Execute(std::span<core::RequestPtr> batch) override {
    calls.push_back("execute" + Where());
    Spend(takes_ns);
    core::CompleteFakeBatch(batch);
  }
  bool Begin(std::span<core::RequestPtr> batch, std::chrono::nanoseconds patience) override {
    calls.push_back("begin" + Where());
    if (takes_ns > static_cast<uint64_t>(patience.count())) {
      for (core::RequestPtr& request : batch) begun_.push_back(std::move(request));
      return false;
    }
    core::CompleteFakeBatch(batch);
    return true;
  }
  void End() override {
    calls.push_back("end" + Where());
    Spend(takes_ns);
    core::CompleteFakeBatch(begun_);
    begun_.clear();
  }

  // Confined to the thread that executes.
  uint64_t takes_ns = 0;
  std::vector<std::string> calls;

 private:
  // Takes that long of the processor: time in which others have it counts for nobody.
  static void Spend(uint64_t duration_ns) {
    const auto spent_ns = [] {
      timespec spent{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
      return static_cast<uint64_t>(spent.tv_sec) * 1'000'000'000 +
             static_cast<uint64_t>(spent.tv_nsec);
    };
    const uint64_t end_ns = spent_ns() + duration_ns;
    while (spent_ns() < end_ns) {
    }
  }
  std::string Where() const {
    return std::this_thread::get_id() == reactor_ ? " on the reactor" : " on its thread";
  }
  const std::string name_ = "instance";
  const std::thread::id reactor_ = std::this_thread::get_id();
  std::vector<core::RequestPtr> begun_;
};

class BegunExecutionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (base::AvailableCpus() == 1) GTEST_SKIP() << "nothing is begun where it would have to wait";
  }
  void Make(bool is_dynamic = false) {
    model_ = core::MakeFakeModel(is_dynamic ? 8 : 0, {16});
    auto instance = std::make_unique<TwoPartInstance>();
    instance_ = instance.get();
    std::vector<NewInstance> list;
    list.emplace_back(std::move(instance));
    BatchSchedulerOptions options{.policy = {.is_dynamic = is_dynamic, .max_batch_size = 8}};
    options.pool.inline_budget = std::chrono::milliseconds(5);
    auto made =
        BatchScheduler::Create(*model_, context_.Get(), std::move(options), std::move(list));
    ASSERT_TRUE(made.ok());
    scheduler_ = std::move(made).value();
  }
  ~BegunExecutionTest() override { scheduler_.reset(); }

  // Sends requests from the thread of a reactor, played by this one; returns the calls of the
  // instance.
  std::vector<std::string> Ask(size_t requests = 1) {
    for (size_t i = 0; i < requests; ++i, ++asked_) {
      core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 16});
      request->round = &rounds_;
      scheduler_->Enqueue(std::move(request));
    }
    rounds_.EndRound();
    const auto soon = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    EXPECT_TRUE(sink_.WaitForGone(asked_));
    EXPECT_TRUE(scheduler_->WaitUntilIdleForTest(soon));
    return std::exchange(instance_->calls, {});
  }
  void AskUntilItIsKnownToBeQuick() {
    for (int i = 0; i < 40; ++i) Ask();
  }

  using Calls = std::vector<std::string>;
  TestContext context_;
  core::FakeSink sink_;
  core::FakeRounds rounds_;
  size_t asked_ = 0;
  TwoPartInstance* instance_ = nullptr;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<BatchScheduler> scheduler_;
};

TEST_F(BegunExecutionTest, AQuickOneIsBegunOnTheReactorOnceThatIsKnown) {
  Make();
  EXPECT_EQ(Ask(), Calls{"execute on its thread"});
  AskUntilItIsKnownToBeQuick();
  EXPECT_EQ(Ask(), Calls{"begin on the reactor"});
}

TEST_F(BegunExecutionTest, TheThreadEndsWhatTakesLonger) {
  Make();
  AskUntilItIsKnownToBeQuick();
  instance_->takes_ns = 30'000'000;
  EXPECT_EQ(Ask(), (Calls{"begin on the reactor", "end on its thread"}));
  instance_->takes_ns = 0;
  EXPECT_EQ(Ask(), Calls{"begin on the reactor"}) << "once is not often";
}

TEST_F(BegunExecutionTest, AModelThatBecameSlowGoesToItsThread) {
  Make();
  AskUntilItIsKnownToBeQuick();
  instance_->takes_ns = 30'000'000;
  for (int i = 0; i < 10; ++i) Ask();
  EXPECT_EQ(Ask(), Calls{"execute on its thread"});
}

TEST_F(BegunExecutionTest, AReactorThatHasMoreToReadWaitsForNone) {
  Make();
  AskUntilItIsKnownToBeQuick();
  rounds_.has_more_events = true;
  EXPECT_EQ(Ask(), Calls{"execute on its thread"});
  rounds_.has_more_events = false;
  EXPECT_EQ(Ask(), Calls{"execute on its thread"}) << "there may be more again";
  AskUntilItIsKnownToBeQuick();
  EXPECT_EQ(Ask(), Calls{"begin on the reactor"});
}

TEST_F(BegunExecutionTest, WithDynamicBatchingASingleRequestOfARoundIsBegun) {
  Make(true);
  AskUntilItIsKnownToBeQuick();
  EXPECT_EQ(Ask(), Calls{"begin on the reactor"});
  EXPECT_EQ(Ask(3), Calls{"execute on its thread"});
}

}  // namespace
}  // namespace nereid::schedule
