// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

// One request at a time, in order of arrival.
class Line final : public WorkSource {
 public:
  void Push(core::RequestPtr request) { waiting_.push_back(std::move(request)); }

  bool HasWaiting() const override { return !waiting_.empty(); }
  BatchDecision Decide(size_t /*instance*/, uint64_t /*now_ns*/) override {
    return {.request_count = waiting_.empty() ? 0u : 1u, .look_again_at_ns = {}};
  }
  void Take(size_t /*instance*/, const BatchDecision& /*decision*/,
            std::vector<core::RequestPtr>& batch) override {
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }

 private:
  std::deque<core::RequestPtr> waiting_;
};

// Holds what waits back for an hour, until it has been asked three times: as if that hour passed
// between the second time and the third.
class LineWithDelay final : public WorkSource {
 public:
  void Push(core::RequestPtr request) { waiting_ = std::move(request); }

  bool HasWaiting() const override { return waiting_ != nullptr; }
  BatchDecision Decide(size_t /*instance*/, uint64_t now_ns) override {
    if (waiting_ == nullptr) return {};
    if (++asked_ < 3) return {.look_again_at_ns = now_ns + uint64_t{3'600'000'000'000}};
    return {.request_count = 1, .look_again_at_ns = {}};
  }
  void Take(size_t /*instance*/, const BatchDecision& /*decision*/,
            std::vector<core::RequestPtr>& batch) override {
    batch.push_back(std::move(waiting_));
  }

 private:
  core::RequestPtr waiting_;
  int asked_ = 0;
};

// Tells when the thread that first used it ends.
struct EndOfThread {
  std::promise<void> promise;
  ~EndOfThread() { promise.set_value(); }
};

// As a scheduler does it.
template <typename Source>
void Enqueue(InstancePool& pool, Source& source, core::RequestPtr request) {
  InstancePool::Arrival arrival(*request);
  {
    base::MutexLock lock(pool.mutex());
    source.Push(std::move(request));
    pool.Announce(arrival, base::NowNs());
  }
  pool.Finish(std::move(arrival));
}

TEST(InstancePool, AThreadWithoutWorkEndsAndAnotherComesWithTheNextRequest) {
  std::vector<std::future<void>> ends;
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  base::ThreadReaper reaper;
  InstancePool pool(*model, line,
                    {.inline_budget = std::chrono::nanoseconds(0),
                     .warm_up = {},
                     .reaper = &reaper,
                     .idle_thread_lifetime = std::chrono::milliseconds(1)});
  std::vector<std::unique_ptr<core::Instance>> instances;
  instances.push_back(std::make_unique<core::FakeInstance>(
      "instance", true, [&](std::span<core::RequestPtr> /*batch*/) {
        thread_local std::unique_ptr<EndOfThread> end;
        if (end != nullptr) return;
        end = std::make_unique<EndOfThread>();
        ends.push_back(end->promise.get_future());
      }));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  for (size_t i = 1; i <= 3; ++i) {
    Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
    ASSERT_TRUE(sink.WaitForGone(i));
    ASSERT_EQ(ends.size(), i) << "a thread of its own served each request";
    ASSERT_EQ(ends.back().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  }
  pool.End();
}

// Fails the test when it is used after it was told to go, or by two threads at once.
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
    core::AnswerFakeBatch(batch);
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
  base::ThreadReaper reaper;
  InstancePool pool(*model, line,
                    {.warm_up = {},
                     .reaper = GetParam() % 2 == 0 ? &reaper : nullptr,
                     .idle_thread_lifetime = std::chrono::microseconds(50)});
  std::vector<const core::Instance*> present;
  const auto make = [&] {
    auto made = std::make_unique<StrictInstance>(random() % 2 == 0, alive);
    present.push_back(made.get());
    return made;
  };
  std::vector<std::unique_ptr<core::Instance>> first;
  first.push_back(make());
  ASSERT_TRUE(pool.Start(std::move(first)).ok());
  std::atomic<bool> is_over{false};
  std::atomic<size_t> sent{0};
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      core::FakeRounds rounds;
      while (!is_over) {
        if (sent - sink.final_count() > kWaiting) {
          std::this_thread::yield();
          continue;
        }
        ++sent;
        core::RequestPtr request = core::MakeFakeRequest(*model, sink, {16});
        // One of them is a reactor, which runs what is quick itself.
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
    // Never none at all, which no configuration can ask for.
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

TEST(InstancePool, AnInstanceThatFailsToStartChangesNothing) {
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
  InstancePool pool(*model, line, {.warm_up = {}});
  auto first = std::make_unique<StrictInstance>(false, alive);
  InstanceChange change;
  change.removed.push_back(first.get());
  std::vector<std::unique_ptr<core::Instance>> instances;
  instances.push_back(std::move(first));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  change.added.push_back({.instance = std::make_unique<StrictInstance>(false, alive), .claim = {}});
  change.added.push_back({.instance = std::make_unique<Failing>(), .claim = {}});
  EXPECT_EQ(pool.Change(std::move(change)).message(), "no room");
  EXPECT_EQ(alive.load(), 1);
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(1));
  pool.End();
}

TEST(InstancePool, EndsAfterAReactorsLastExecutionThoughItsThreadWaits) {
  core::FakeSink sink;
  core::FakeRounds rounds;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  InstancePool pool(*model, line,
                    {.inline_budget = std::chrono::hours(1),
                     .warm_up = {},
                     .idle_thread_lifetime = std::chrono::hours(1)});
  std::promise<void> entered;
  std::promise<void> leave;
  bool is_last = false;
  std::vector<std::unique_ptr<core::Instance>> instances;
  instances.push_back(std::make_unique<core::FakeInstance>(
      "instance", true, [&](std::span<core::RequestPtr> /*batch*/) {
        if (!is_last) return;
        entered.set_value();
        leave.get_future().wait();
      }));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  const auto enqueue = [&] {
    core::RequestPtr request = core::MakeFakeRequest(*model, sink, {16});
    request->round = &rounds;
    Enqueue(pool, line, std::move(request));
  };
  for (size_t i = 1; i <= 40; ++i) {
    enqueue();
    ASSERT_TRUE(sink.WaitForGone(i));
    ASSERT_TRUE(
        pool.WaitUntilAsleepForTest(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  }
  is_last = true;
  std::thread reactor(enqueue);
  entered.get_future().wait();
  std::thread ender([&] { pool.End(); });
  for (bool is_ending = false; !is_ending; std::this_thread::yield()) {
    base::MutexLock lock(pool.mutex());
    is_ending = pool.is_stopping();
  }
  // Mostly enough for the instance's thread to look, and to wait again.
  for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
  leave.set_value();
  reactor.join();
  ender.join();
}

TEST(InstancePool, ADelayThatEndsJustBeforeItsThreadWouldSleepIsNotSleptOver) {
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  LineWithDelay line;
  InstancePool pool(*model, line, {.warm_up = {}});
  std::vector<std::unique_ptr<core::Instance>> instances;
  instances.push_back(std::make_unique<core::FakeInstance>(
      "instance", false, [](std::span<core::RequestPtr> /*batch*/) {}));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  ASSERT_TRUE(
      pool.WaitUntilAsleepForTest(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  // Asked for the first time here, by its thread twice: to take a batch, and how long to sleep.
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(1));
  pool.End();
}

//
TEST(InstancePool, WhileOneInstanceStandsInLineAnotherRunsAndThenNobodyStandsInVain) {
  RateLimiter limiter{{}};
  const auto needs = [](const char* resource, uint32_t priority) {
    return RateLimiter::ClaimOptions{
        .needs = {.resources = {{resource, true, 1}}, .priority = priority}, .on_grant = [] {}};
  };
  auto other_model = limiter.Register(needs("a", 1));
  ASSERT_TRUE(other_model.ok());
  ASSERT_TRUE((*other_model)->TryTake());

  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  InstancePool pool(*model, line, {.warm_up = {}, .rate_limiter = &limiter});
  std::vector<std::string> ran;
  std::vector<std::unique_ptr<core::Instance>> instances;
  for (const std::string name : {"a", "b"}) {
    instances.push_back(std::make_unique<core::FakeInstance>(
        name, false, [&ran, name](std::span<core::RequestPtr>) { ran.push_back(name); }));
  }
  // The second one may pass the first, which is of less importance.
  ASSERT_TRUE(pool.Start(std::move(instances), {needs("a", 2), needs("b", 1)}).ok());
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  ASSERT_TRUE(sink.WaitForGone(1));
  EXPECT_EQ(ran, std::vector<std::string>{"b"});

  // Of the least importance: behind the first instance, did that stand in line still.
  std::promise<void> granted;
  auto last_options = needs("b", 100);
  last_options.on_grant = [&granted] { granted.set_value(); };
  auto last = limiter.Register(std::move(last_options));
  ASSERT_TRUE(last.ok());
  if (!(*last)->TryTake()) {
    EXPECT_EQ(granted.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  }
  pool.End();
}

}  // namespace
}  // namespace nereid::schedule
