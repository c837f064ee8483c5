// SPDX-License-Identifier: Apache-2.0
// Changes of instances whose rate is limited.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/testing/fakes.h"
#include "schedule/instance_changes.h"
#include "schedule/testing/context.h"
#include "schedule/testing/line.h"

namespace nereid::schedule {
namespace {

class UnfitInstance final : public core::Instance {
 public:
  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return false; }
  void Execute(std::span<core::RequestPtr> /*batch*/) override {}
  base::Status InitializeOnThread() override { return base::InternalError("no room"); }

 private:
  const std::string name_ = "unfit";
};

RateLimiter::ClaimOptions Needs(const std::string& resource, bool is_global,
                                uint32_t priority = 1) {
  return {.needs = {.resources = {{resource, is_global, 1}}, .priority = priority},
          .on_grant = [] {}};
}

// Executes and ends as the test says. Both are called on its own thread.
class RatedInstance final : public core::Instance {
 public:
  RatedInstance(std::function<void()> execute, std::function<void()> end)
      : execute_(std::move(execute)), end_(std::move(end)) {}
  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return false; }
  void Execute(std::span<core::RequestPtr> batch) override {
    execute_();
    core::CompleteFakeBatch(batch);
  }
  void FinalizeOnThread() override { end_(); }

 private:
  const std::string name_ = "rated";
  const std::function<void()> execute_;
  const std::function<void()> end_;
};

class RatedChanges : public testing::Test {
 protected:
  void Start(std::unique_ptr<core::Instance> instance, RateLimiter::ClaimOptions needs) {
    std::vector<NewInstance> instances;
    instances.emplace_back(std::move(instance), std::move(needs));
    ASSERT_TRUE(pool_.Start(std::move(instances)).ok());
  }
  base::Status Replace(const core::Instance* removed, std::unique_ptr<core::Instance> added,
                       std::optional<RateLimiter::ClaimOptions> needs) {
    InstanceChange change;
    change.removed.push_back(removed);
    change.added.push_back({.instance = std::move(added), .claim = std::move(needs)});
    return pool_.Change(std::move(change));
  }
  void Send() { Enqueue(pool_, line_, core::MakeFakeRequest(*model_, sink_, {16})); }
  static std::unique_ptr<core::Instance> Quick() {
    return std::make_unique<core::FakeInstance>("quick", false, nullptr);
  }

  core::FakeSink sink_;
  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {16});
  Line line_;
  TestContext context_;
  InstancePool pool_{*model_, line_, context_.Get(), {}};
};

// What its execution leaves is for the others: its end takes longer than all of their executions.
TEST_F(RatedChanges, AnInstanceThatLeavesAfterItsExecutionWaitsForNoFurtherOne) {
  std::promise<void> entered;
  std::promise<void> leave;
  auto first = std::make_unique<RatedInstance>(
      [&] {
        entered.set_value();
        leave.get_future().wait();
      },
      [&] { EXPECT_TRUE(sink_.WaitForGone(4)) << "it keeps the others waiting"; });
  const core::Instance* const removed = first.get();
  Start(std::move(first), Needs("r", true));
  for (int i = 0; i < 4; ++i) Send();
  entered.get_future().wait();
  std::thread changer([&] { EXPECT_TRUE(Replace(removed, Quick(), Needs("r", true)).ok()); });
  for (bool is_changed = false; !is_changed; std::this_thread::yield()) {
    base::MutexLock lock(pool_.mutex());
    is_changed = pool_.instance_count() == 2;
  }
  leave.set_value();
  EXPECT_TRUE(sink_.WaitForGone(4));
  changer.join();
  pool_.End();
}

TEST_F(RatedChanges, AnInstanceThatLeavesTheModelLeavesTheLine) {
  std::promise<void> entered;
  std::promise<void> leave;
  std::promise<void> holder_granted;
  std::promise<void> last_granted;
  std::future<void> is_last_granted = last_granted.get_future();
  auto first = std::make_unique<RatedInstance>(
      [&] {
        entered.set_value();
        leave.get_future().wait();
      },
      [&] {
        EXPECT_EQ(is_last_granted.wait_for(std::chrono::minutes(1)), std::future_status::ready)
            << "it keeps others in line";
      });
  const core::Instance* const removed = first.get();
  Start(std::move(first), Needs("r", true));
  Send();
  entered.get_future().wait();
  RateLimiter::ClaimOptions needs = Needs("r", true);
  needs.on_grant = [&] { holder_granted.set_value(); };
  auto holder = context_.rate_limiter.Register(std::move(needs));
  ASSERT_TRUE(holder.ok());
  ASSERT_FALSE((*holder)->TryTake());
  // The instance wants to go on after its execution, and is in line again when the other is
  // granted.
  Send();
  leave.set_value();
  holder_granted.get_future().wait();
  ASSERT_TRUE((*holder)->TryTake());
  needs = Needs("r", true, /*priority=*/100);
  needs.on_grant = [&] { last_granted.set_value(); };
  auto last = context_.rate_limiter.Register(std::move(needs));
  ASSERT_TRUE(last.ok());
  ASSERT_FALSE((*last)->TryTake()) << "it is behind the instance";
  std::thread changer([&] { EXPECT_TRUE(Replace(removed, Quick(), std::nullopt).ok()); });
  EXPECT_TRUE(sink_.WaitForGone(2)) << "the new one needs nothing";
  (*holder)->Give();
  changer.join();
  EXPECT_TRUE((*last)->TryTake());
  pool_.End();
}

// I-5, R-1
TEST_F(RatedChanges, AResourceBecomesOneOfEachDeviceWithTheInstancesThatNeedIt) {
  auto first = Quick();
  const core::Instance* removed = first.get();
  Start(std::move(first), Needs("r", true));
  auto unfit = std::make_unique<UnfitInstance>();
  EXPECT_EQ(Replace(removed, std::move(unfit), Needs("r", false)).message(), "no room");
  EXPECT_FALSE(context_.rate_limiter.Register(Needs("r", false)).ok()) << "the first one stays";
  auto second = Quick();
  const core::Instance* const added = second.get();
  ASSERT_TRUE(Replace(removed, std::move(second), Needs("r", false)).ok());
  EXPECT_FALSE(context_.rate_limiter.Register(Needs("r", true)).ok());
  EXPECT_TRUE(context_.rate_limiter.Register(Needs("r", false)).ok());
  Send();
  EXPECT_TRUE(sink_.WaitForGone(1));
  // One of the other kind beside one that stays is refused as in a configuration that is loaded.
  InstanceChange change;
  change.added.push_back({.instance = Quick(), .claim = Needs("r", true)});
  EXPECT_FALSE(pool_.Change(std::move(change)).ok());
  EXPECT_TRUE(Replace(added, Quick(), Needs("r", true)).ok());
  pool_.End();
}

}  // namespace
}  // namespace nereid::schedule
