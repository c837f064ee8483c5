// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/testing/fakes.h"
#include "schedule/testing/context.h"
#include "schedule/testing/line.h"

namespace nereid::schedule {
namespace {

// Fails the test if it is used after its removal, or by two threads at once.
class StrictInstance final : public core::Instance {
 public:
  StrictInstance(bool any_thread, std::atomic<int>& alive)
      : any_thread_(any_thread), alive_(alive) {
    ++alive_;
  }
  ~StrictInstance() override { --alive_; }
  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return any_thread_; }
  void Execute(std::span<core::RequestPtr> batch) override {
    EXPECT_FALSE(is_busy_.exchange(true));
    EXPECT_FALSE(is_final_.load());
    core::CompleteFakeBatch(batch);
    is_busy_.store(false);
  }
  void FinalizeOnThread() override { is_final_.store(true); }

 private:
  const std::string name_ = "strict";
  const bool any_thread_;
  std::atomic<int>& alive_;
  std::atomic<bool> is_busy_{false};
  std::atomic<bool> is_final_{false};
};

class ChangingPool : public testing::TestWithParam<uint32_t> {};

TEST_P(ChangingPool, LosesNoRequestAndLeavesNoInstanceBehind) {
  constexpr size_t kClients = 3;
  constexpr size_t kChanges = 60;
  constexpr size_t kWaiting = 500;
  std::mt19937 random(GetParam());
  std::atomic<int> alive{0};
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  InstancePool pool(*model, line, context.Get(),
                    {.idle_thread_lifetime = std::chrono::microseconds(50)});
  std::vector<const core::Instance*> present;
  const auto make = [&] {
    auto made = std::make_unique<StrictInstance>(random() % 2 == 0, alive);
    present.push_back(made.get());
    return made;
  };
  std::vector<NewInstance> first;
  first.emplace_back(make());
  ASSERT_TRUE(pool.Start(std::move(first)).ok());
  std::atomic<bool> is_over{false};
  std::atomic<size_t> sent{0};
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      core::FakeRounds rounds;
      while (!is_over) {
        if (const size_t before = sent++; before > kWaiting) sink.WaitForGone(before - kWaiting);
        core::RequestPtr request = core::MakeFakeRequest(*model, sink, {16});
        // One of them is a reactor, which runs fast requests itself.
        if (i == 0) request->round = &rounds;
        Enqueue(pool, line, std::move(request));
        if (i == 0) rounds.EndRound();
      }
    });
  }
  for (size_t changes = 0; changes < kChanges; ++changes) {
    InstanceChange change;
    const size_t more = random() % 3;
    std::ranges::shuffle(present, random);
    // Never removes all, which no configuration can request.
    const size_t fewer = std::min(random() % 4, more == 0 ? present.size() - 1 : present.size());
    change.removed.assign(present.end() - static_cast<std::ptrdiff_t>(fewer), present.end());
    present.resize(present.size() - fewer);
    for (size_t i = 0; i < more; ++i) change.added.push_back({.instance = make(), .claim = {}});
    EXPECT_TRUE(pool.Change(std::move(change)).ok());
    EXPECT_EQ(alive.load(), static_cast<int>(present.size())) << "removed instances are gone";
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(sink.WaitForGone(sent));
  EXPECT_EQ(sink.final_count(), sent);
  pool.End();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChangingPool, testing::Range(1u, 7u));

TEST(InstanceChanges, AnInstanceThatFailsToStartChangesNothing) {
  class Failing final : public core::Instance {
   public:
    const std::string& name() const override { return name_; }
    bool runs_on_any_thread() const override { return false; }
    void Execute(std::span<core::RequestPtr> /*batch*/) override {}
    base::Status InitializeOnThread() override { return base::InternalError("no room"); }

   private:
    const std::string name_ = "failing";
  };
  std::atomic<int> alive{0};
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  InstancePool pool(*model, line, context.Get(), {});
  auto first = std::make_unique<StrictInstance>(false, alive);
  InstanceChange change;
  change.removed.push_back(first.get());
  std::vector<NewInstance> instances;
  instances.emplace_back(std::move(first));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  change.added.push_back({.instance = std::make_unique<StrictInstance>(false, alive), .claim = {}});
  change.added.push_back({.instance = std::make_unique<Failing>(), .claim = {}});
  EXPECT_EQ(pool.Change(std::move(change)).message(), "no room");
  EXPECT_EQ(alive.load(), 1);
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(1));
  pool.End();
}

}  // namespace
}  // namespace nereid::schedule
