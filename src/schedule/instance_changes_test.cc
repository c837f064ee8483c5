// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/no_more_threads.h"
#include "base/thread.h"
#include "core/testing/fakes.h"
#include "schedule/testing/context.h"
#include "schedule/testing/line.h"

namespace nereid::schedule {
namespace {

// How many instances exist.
class Population {
 public:
  void Enter() { Add(1); }
  void Leave() { Add(-1); }
  int count() {
    base::MutexLock lock(mutex_);
    return count_;
  }
  // Waits (up to a minute) until there are so many.
  bool WaitFor(int count) {
    const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    base::MutexLock lock(mutex_);
    while (count_ != count) {
      if (!changed_.WaitUntil(mutex_, deadline)) return count_ == count;
    }
    return true;
  }

 private:
  void Add(int difference) {
    base::MutexLock lock(mutex_);
    count_ += difference;
    changed_.NotifyAll();
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  int count_ NEREID_GUARDED_BY(mutex_) = 0;
};

// Fails the test if it is used after its removal, or by two threads at once.
class StrictInstance : public core::Instance {
 public:
  StrictInstance(bool any_thread, Population& population)
      : any_thread_(any_thread), population_(population) {
    population_.Enter();
  }
  ~StrictInstance() override { population_.Leave(); }
  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return any_thread_; }
  void Execute(std::span<core::RequestPtr> batch) final {
    EXPECT_FALSE(is_busy_.exchange(true));
    EXPECT_FALSE(is_final_.load());
    ExecuteBatch(batch);
    is_busy_.store(false);
  }
  void FinalizeOnThread() override { is_final_.store(true); }
  bool is_final() const { return is_final_.load(); }

 private:
  virtual void ExecuteBatch(std::span<core::RequestPtr> batch) { core::CompleteFakeBatch(batch); }

  const std::string name_ = "strict";
  const bool any_thread_;
  Population& population_;
  std::atomic<bool> is_busy_{false};
  std::atomic<bool> is_final_{false};
};

// Passes its requests on and returns, as asynchronous backends do.
class LateInstance final : public StrictInstance {
 public:
  // Called with each request and its instance, which may be used until the request has ended.
  using Keep = std::function<void(core::RequestPtr, const LateInstance&)>;

  LateInstance(bool any_thread, Population& population, Keep keep)
      : StrictInstance(any_thread, population), keep_(std::move(keep)) {}

 private:
  void ExecuteBatch(std::span<core::RequestPtr> batch) override {
    for (core::RequestPtr& request : batch) keep_(std::move(request), *this);
  }

  const Keep keep_;
};

// Ends requests on threads of its own, in all ways in which a backend may.
class LateEnds {
 public:
  explicit LateEnds(uint32_t seed) {
    for (uint32_t i = 0; i < 2; ++i)
      threads_.emplace_back("ends", [this, seed, i] { Run(seed + i); });
  }
  // Returns when all requests have ended.
  ~LateEnds() {
    {
      base::MutexLock lock(mutex_);
      is_over_ = true;
    }
    added_.NotifyAll();
    threads_.clear();
  }

  void Add(core::RequestPtr request, const LateInstance& instance) {
    base::MutexLock lock(mutex_);
    waiting_.emplace_back(std::move(request), &instance);
    added_.NotifyOne();
  }

 private:
  void Run(uint32_t seed) {
    std::mt19937 random(seed);
    while (true) {
      std::pair<core::RequestPtr, const LateInstance*> next;
      {
        base::MutexLock lock(mutex_);
        while (waiting_.empty() && !is_over_) added_.Wait(mutex_);
        if (waiting_.empty()) return;
        next = std::move(waiting_.front());
        waiting_.pop_front();
      }
      for (uint32_t i = random() % 4; i > 0; --i) std::this_thread::yield();
      End(std::move(next.first), *next.second, random() % 3);
    }
  }
  static void End(core::RequestPtr request, const LateInstance& instance, uint32_t way) {
    EXPECT_FALSE(instance.is_final()) << "it still has requests";
    if (way == 0) return core::CompleteWithError(std::move(request), base::InternalError("why"));
    core::ResponsePtr response = core::Response::Create(*request);
    core::RequestRef reference(*request);
    if (way == 1) request.reset();
    EXPECT_FALSE(instance.is_final()) << "it is about to respond";
    EXPECT_TRUE(reference->MarkCompleted());
    reference->sink().Send(std::move(response), true);
    EXPECT_FALSE(instance.is_final()) << "it has not dropped the request";
    // What has been released is over with the last reference to it.
    if (way == 1) return reference.Reset();
    reference.Reset();
    request.reset();
  }

  base::Mutex mutex_;
  base::CondVar added_;
  bool is_over_ NEREID_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<core::RequestPtr, const LateInstance*>> waiting_ NEREID_GUARDED_BY(mutex_);
  std::vector<base::Thread> threads_;
};

class ChangingPool : public testing::TestWithParam<uint32_t> {
 protected:
  using Make = std::function<std::unique_ptr<core::Instance>(std::mt19937& random)>;

  // Changes instances at random while clients send requests. `check` is called after each change
  // with the number of instances that should exist.
  void Storm(const Make& make_one, const std::function<void(int count)>& check);
};

void ChangingPool::Storm(const Make& make_one, const std::function<void(int count)>& check) {
  constexpr size_t kClients = 3;
  constexpr size_t kChanges = 60;
  constexpr size_t kWaiting = 500;
  std::mt19937 random(GetParam());
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  InstancePool pool(*model, line, context.Get(),
                    {.idle_thread_lifetime = std::chrono::microseconds(50)});
  std::vector<const core::Instance*> present;
  const auto make = [&] {
    auto made = make_one(random);
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
    check(static_cast<int>(present.size()));
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(sink.WaitForGone(sent));
  EXPECT_EQ(sink.final_count(), sent);
  pool.End();
}

TEST_P(ChangingPool, LosesNoRequestAndLeavesNoInstanceBehind) {
  Population population;
  Storm(
      [&](std::mt19937& random) {
        return std::make_unique<StrictInstance>(random() % 2 == 0, population);
      },
      [&](int count) { EXPECT_EQ(population.count(), count) << "removed instances are gone"; });
}

// I-3
TEST_P(ChangingPool, EndsNoInstanceWhoseBackendStillHasRequests) {
  Population population;
  LateEnds ends(GetParam());
  int present = 0;
  Storm(
      [&](std::mt19937& random) -> std::unique_ptr<core::Instance> {
        if (random() % 4 == 0) {
          return std::make_unique<StrictInstance>(random() % 2 == 0, population);
        }
        return std::make_unique<LateInstance>(
            random() % 2 == 0, population,
            [&ends](core::RequestPtr request, const LateInstance& instance) {
              ends.Add(std::move(request), instance);
            });
      },
      [&](int count) {
        EXPECT_GE(population.count(), count);
        present = count;
        // Now and then until all of them are gone: new requests are those of the others.
        if (count % 2 == 0) {
          EXPECT_TRUE(population.WaitFor(count));
        }
      });
  EXPECT_GT(present, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChangingPool, testing::Range(1u, 7u));

base::TimePoint InAMinute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

// I-3
class InstanceWithOpenRequests : public testing::TestWithParam<bool> {};

TEST_P(InstanceWithOpenRequests, LivesUntilTheyEndAndTakesNoOthers) {
  Population population;
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  std::vector<core::RequestPtr> kept;  // confined to the first instance's thread while it runs
  InstancePool pool(*model, line, context.Get(), {});
  auto first = std::make_unique<LateInstance>(
      GetParam(), population,
      [&](core::RequestPtr request, const LateInstance&) { kept.push_back(std::move(request)); });
  const LateInstance* const removed = first.get();
  std::vector<NewInstance> instances;
  instances.emplace_back(std::move(first));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  for (int i = 0; i < 2; ++i) Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  ASSERT_TRUE(pool.WaitUntilAsleepForTest(InAMinute()));
  ASSERT_EQ(kept.size(), 2u);

  InstanceChange change;
  change.removed.push_back(removed);
  change.added.push_back(
      {.instance = std::make_unique<StrictInstance>(GetParam(), population), .claim = {}});
  EXPECT_TRUE(pool.Change(std::move(change)).ok()) << "it does not wait";
  ASSERT_EQ(population.count(), 2);
  for (int i = 0; i < 3; ++i) Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(3));
  {
    base::MutexLock lock(pool.mutex());
    ASSERT_EQ(kept.size(), 2u) << "the removed one takes no others";
  }
  core::CompleteWithError(std::move(kept[0]), base::InternalError("why"));
  ASSERT_EQ(population.count(), 2);
  EXPECT_FALSE(removed->is_final());
  kept.pop_back();  // which releases the request without a response
  EXPECT_TRUE(population.WaitFor(1));
  EXPECT_TRUE(sink.WaitForGone(5));
  pool.End();
}

INSTANTIATE_TEST_SUITE_P(OnAnyThread, InstanceWithOpenRequests, testing::Bool());

class FailingInstance final : public core::Instance {
 public:
  const std::string& name() const override { return name_; }
  bool runs_on_any_thread() const override { return false; }
  void Execute(std::span<core::RequestPtr> /*batch*/) override {}
  base::Status InitializeOnThread() override { return base::InternalError("no room"); }

 private:
  const std::string name_ = "failing";
};

TEST(InstanceChanges, AnInstanceThatFailsToStartChangesNothing) {
  Population population;
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  InstancePool pool(*model, line, context.Get(), {});
  auto first = std::make_unique<StrictInstance>(false, population);
  InstanceChange change;
  change.removed.push_back(first.get());
  std::vector<NewInstance> instances;
  instances.emplace_back(std::move(first));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  change.added.push_back(
      {.instance = std::make_unique<StrictInstance>(false, population), .claim = {}});
  change.added.push_back({.instance = std::make_unique<FailingInstance>(), .claim = {}});
  EXPECT_EQ(pool.Change(std::move(change)).message(), "no room");
  EXPECT_EQ(population.count(), 1);
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(1));
  pool.End();
}

TEST(InstanceChanges, NothingChangesIfNoThreadCanEndTheRemovedInstances) {
  Population population;
  core::FakeSink sink;
  const auto model = core::MakeFakeModel(0, {16});
  Line line;
  TestContext context;
  InstancePool pool(*model, line, context.Get(), {});
  auto first = std::make_unique<StrictInstance>(false, population);
  const core::Instance* const removed = first.get();
  std::vector<NewInstance> instances;
  instances.emplace_back(std::move(first));
  ASSERT_TRUE(pool.Start(std::move(instances)).ok());
  const auto replace = [&] {
    InstanceChange change;
    change.removed.push_back(removed);
    change.added.push_back(
        {.instance = std::make_unique<StrictInstance>(true, population), .claim = {}});
    return pool.Change(std::move(change));
  };
  {
    const base::NoMoreThreads limit;
    EXPECT_EQ(replace().message(),
              "could not start the thread 'retire': Resource temporarily unavailable");
  }
  EXPECT_EQ(population.count(), 1);
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(1));
  EXPECT_TRUE(replace().ok());
  EXPECT_EQ(population.count(), 1);
  Enqueue(pool, line, core::MakeFakeRequest(*model, sink, {16}));
  EXPECT_TRUE(sink.WaitForGone(2));
  pool.End();
}

}  // namespace
}  // namespace nereid::schedule
