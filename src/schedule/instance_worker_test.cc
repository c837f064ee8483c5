// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_worker.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "core/testing/fakes.h"
#include "schedule/testing/context.h"
#include "schedule/testing/line.h"

namespace nereid::schedule {
namespace {

// Delays what waits for an hour, until its third decision, as if that hour passed between the
// second decision and the third.
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

// A line whose second decision takes as long as the test likes, as one of a model's own batching
// library may. The first one is made by the thread that brings the request, the second one by the
// instance's thread.
class SlowLine final : public WorkSource {
 public:
  explicit SlowLine(std::future<void> gate) : gate_(std::move(gate)) {}
  void Push(core::RequestPtr request) { waiting_ = std::move(request); }
  // Ready when the second decision has begun.
  std::future<void> asked() { return asked_.get_future(); }

  bool HasWaiting() const override { return waiting_ != nullptr; }
  BatchDecision Decide(size_t /*instance*/, uint64_t /*now_ns*/) override {
    if (waiting_ == nullptr) return {};
    if (++decisions_ == 2) {
      asked_.set_value();
      gate_.wait();
    }
    return {.request_count = 1, .look_again_at_ns = {}};
  }
  void Take(size_t /*instance*/, const BatchDecision& /*decision*/,
            std::vector<core::RequestPtr>& batch) override {
    batch.push_back(std::move(waiting_));
  }

 private:
  const std::future<void> gate_;
  std::promise<void> asked_;
  int decisions_ = 0;
  core::RequestPtr waiting_;
};

// Reports when the thread that first used it ends.
struct EndOfThread {
  std::promise<void> promise;
  ~EndOfThread() { promise.set_value(); }
};

TEST(InstanceWorker, AThreadWithoutWorkEndsAndAnotherComesWithTheNextRequest) {
  std::vector<std::future<void>> ends;
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  InstancePool pool(*model, line, context.Get(),
                    {.inline_budget = std::chrono::nanoseconds(0),
                     .idle_thread_lifetime = std::chrono::milliseconds(1)});
  std::vector<NewInstance> instances;
  instances.emplace_back(std::make_unique<core::FakeInstance>(
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

// The watchdogs of these tests look when they are told to.
constexpr std::chrono::hours kHour{1};

// Two looks: the first one only sees that the thread works.
void LookTwice(base::Watchdog& watchdog) {
  watchdog.Look(kHour);
  watchdog.Look(kHour);
}

base::TimePoint InAMinute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

TEST(InstanceWorker, AThreadThatIsHeldUpOutsideAnExecutionIsStuckUntilItGoesOn) {
  base::Watchdog watchdog(kHour);
  std::promise<void> gate;
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  SlowLine line(gate.get_future());
  std::future<void> asked = line.asked();
  TestContext context;
  context.watchdog = &watchdog;
  InstancePool pool(*model, line, context.Get(), {});
  std::vector<NewInstance> instances;
  instances.emplace_back(std::make_unique<core::FakeInstance>("slow", false, nullptr));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  ASSERT_TRUE(pool.WaitUntilAsleepForTest(InAMinute()));
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  asked.wait();
  LookTwice(watchdog);
  const std::vector<base::Watchdog::Stuck> stuck = watchdog.AllStuck();
  gate.set_value();
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].Describe(), "the instance 'slow' has not got on for 3600 s");
  EXPECT_EQ(stuck[0].owner, model.get());
  EXPECT_TRUE(sink.WaitForGone(1));
  ASSERT_TRUE(pool.WaitUntilAsleepForTest(InAMinute()));
  watchdog.Look(kHour);
  EXPECT_FALSE(watchdog.has_stuck());
  pool.End();
}

TEST(InstanceWorker, AThreadThatExecutesIsNotStuckHoweverLongThatTakes) {
  base::Watchdog watchdog(kHour);
  std::promise<void> gate;
  std::promise<void> executes;
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  context.watchdog = &watchdog;
  InstancePool pool(*model, line, context.Get(), {});
  std::vector<NewInstance> instances;
  instances.emplace_back(std::make_unique<core::FakeInstance>(
      "slow", false, [&](std::span<core::RequestPtr> /*batch*/) {
        executes.set_value();
        gate.get_future().wait();
      }));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  executes.get_future().wait();
  LookTwice(watchdog);
  EXPECT_FALSE(watchdog.has_stuck());
  gate.set_value();
  EXPECT_TRUE(sink.WaitForGone(1));
  pool.End();
}

TEST(InstanceWorker, ADelayThatEndsJustBeforeItsThreadWouldSleepIsNotSleptOver) {
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  LineWithDelay line;
  TestContext context;
  InstancePool pool(*model, line, context.Get(), {});
  std::vector<NewInstance> instances;
  instances.emplace_back(std::make_unique<core::FakeInstance>(
      "instance", false, [](std::span<core::RequestPtr> /*batch*/) {}));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  ASSERT_TRUE(
      pool.WaitUntilAsleepForTest(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  // The first decision is made here, two by the instance's thread: to take a batch, and to choose
  // how long to sleep.
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(1));
  pool.End();
}

//
TEST(InstanceWorker, WhileOneInstanceWaitsInLineAnotherRunsAndThenNoneWaitsInVain) {
  TestContext context;
  RateLimiter& limiter = context.rate_limiter;
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
  InstancePool pool(*model, line, context.Get(), {});
  std::vector<std::string> ran;
  std::vector<NewInstance> instances;
  for (const std::string name : {"a", "b"}) {
    instances.emplace_back(
        std::make_unique<core::FakeInstance>(
            name, false, [&ran, name](std::span<core::RequestPtr>) { ran.push_back(name); }),
        needs(name.c_str(), name == "a" ? 2 : 1));
  }
  // The second one may pass the first one, which has a lower priority.
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  ASSERT_TRUE(sink.WaitForGone(1));
  EXPECT_EQ(ran, std::vector<std::string>{"b"});

  // This claim has the lowest priority: it comes after the first instance if that still waits in
  // line.
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
