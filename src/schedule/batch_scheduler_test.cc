// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "base/thread_use.h"
#include "core/testing/fakes.h"
#include "schedule/testing/context.h"

namespace nereid::schedule {
namespace {

using std::chrono::microseconds;

class BatchSchedulerTest : public testing::Test {
 protected:
  ~BatchSchedulerTest() override { scheduler_.reset(); }

  void Make(BatchSchedulerOptions options, size_t instances, bool any_thread,
            core::FakeInstance::Hook hook) {
    model_ = core::MakeFakeModel(
        options.policy.is_dynamic ? static_cast<int64_t>(options.policy.max_batch_size) : 0, {16});
    std::vector<NewInstance> list;
    for (size_t i = 0; i < instances; ++i) {
      list.emplace_back(
          std::make_unique<core::FakeInstance>("instance_" + std::to_string(i), any_thread, hook));
    }
    auto made =
        BatchScheduler::Create(*model_, context_.Get(), std::move(options), std::move(list));
    ASSERT_TRUE(made.ok());
    scheduler_ = std::move(made).value();
  }
  core::RequestPtr Request() { return core::MakeFakeRequest(*model_, sink_, {1, 16}); }
  static base::TimePoint Soon() {
    return std::chrono::steady_clock::now() + std::chrono::minutes(1);
  }

  // Enqueues as a reactor does; the test's thread plays the reactor.
  void EnqueueOnReactor() {
    core::RequestPtr request = Request();
    request->round = &rounds_;
    scheduler_->Enqueue(std::move(request));
  }

  TestContext context_;
  core::FakeSink sink_;
  core::FakeRounds rounds_;
  const std::thread::id rounds_thread_ = std::this_thread::get_id();
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<BatchScheduler> scheduler_;
};

BatchSchedulerOptions Dynamic(size_t max_batch_size) {
  return {.policy = {.is_dynamic = true, .max_batch_size = max_batch_size}};
}

TEST_F(BatchSchedulerTest, CompletesEveryRequestFromManyThreadsOnSeveralInstances) {
  std::atomic<size_t> seen{0};
  Make(Dynamic(8), 3, false, [&](std::span<core::RequestPtr> batch) {
    EXPECT_LE(batch.size(), 8u);
    seen += batch.size();
  });
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 500; ++i) scheduler_->Enqueue(Request());
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(sink_.WaitForGone(2000));
  EXPECT_EQ(seen, 2000u);
  EXPECT_EQ(sink_.final_count(), 2000u);
}

TEST_F(BatchSchedulerTest, FormsABatchOfWhatArrivedWhileTheInstanceWasBusy) {
  std::promise<void> entered;
  std::promise<void> leave;
  std::vector<size_t> sizes;
  Make(Dynamic(8), 1, false, [&](std::span<core::RequestPtr> batch) {
    sizes.push_back(batch.size());
    if (sizes.size() == 1) {
      entered.set_value();
      leave.get_future().wait();
    }
  });
  scheduler_->Enqueue(Request());
  entered.get_future().wait();
  for (int i = 0; i < 5; ++i) scheduler_->Enqueue(Request());
  leave.set_value();
  EXPECT_TRUE(sink_.WaitForGone(6));
  EXPECT_EQ(sizes, (std::vector<size_t>{1, 5}));
}

TEST_F(BatchSchedulerTest, RunsOnTheReactorOnlyOnceTheInstanceIsKnownToBeQuick) {
  std::vector<std::thread::id> threads;
  // A budget of an hour: only the number of measured runs decides.
  Make({.pool = {.inline_budget = std::chrono::hours(1)}}, 1, true,
       [&](std::span<core::RequestPtr>) { threads.push_back(std::this_thread::get_id()); });
  for (size_t i = 0; i < 40; ++i) {
    EnqueueOnReactor();
    ASSERT_TRUE(sink_.WaitForGone(i + 1));
    // The instance counts as free only a moment after its response was sent.
    ASSERT_TRUE(scheduler_->WaitUntilIdleForTest(Soon()));
  }
  EXPECT_NE(threads.front(), std::this_thread::get_id());
  EXPECT_EQ(threads.back(), std::this_thread::get_id());
}

TEST_F(BatchSchedulerTest, NeverRunsASlowInstanceOnTheReactor) {
  Make({.pool = {.inline_budget = std::chrono::nanoseconds(1)}}, 1, true,
       [&](std::span<core::RequestPtr>) {
         const uint64_t start = base::NowNs();
         while (base::NowNs() - start < 1000) {
         }
         EXPECT_NE(rounds_thread_, std::this_thread::get_id());
       });
  for (size_t i = 0; i < 50; ++i) {
    EnqueueOnReactor();
    ASSERT_TRUE(sink_.WaitForGone(i + 1));
  }
}

TEST_F(BatchSchedulerTest, OneSlowExecutionKeepsAQuickInstanceOnTheReactorAndASecondDoesNot) {
  std::vector<std::thread::id> threads;
  // A single slow execution exceeds what the average may grow by.
  Make({.pool = {.inline_budget = std::chrono::milliseconds(5)}}, 1, true,
       [&](std::span<core::RequestPtr>) {
         threads.push_back(std::this_thread::get_id());
         const bool is_slow = threads.size() == 41 || threads.size() == 51;
         const uint64_t end_ns = base::ThreadUse::Now().cpu_ns + (is_slow ? 80'000'000 : 0);
         while (base::ThreadUse::Now().cpu_ns < end_ns) {
         }
       });
  for (size_t i = 0; i < 52; ++i) {
    EnqueueOnReactor();
    ASSERT_TRUE(sink_.WaitForGone(i + 1));
    ASSERT_TRUE(scheduler_->WaitUntilIdleForTest(Soon()));
  }
  EXPECT_EQ(threads[41], rounds_thread_) << "after the first slow one";
  EXPECT_NE(threads[51], rounds_thread_) << "after the second";
}

TEST_F(BatchSchedulerTest, BatchesWhatArrivedInOneRoundOnTheReactor) {
  std::vector<size_t> sizes;
  auto options = Dynamic(8);
  options.pool.inline_budget = std::chrono::hours(1);
  Make(std::move(options), 1, true,
       [&](std::span<core::RequestPtr> batch) { sizes.push_back(batch.size()); });
  size_t sent = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 3; ++i, ++sent) {
      EnqueueOnReactor();
    }
    rounds_.EndRound();
    ASSERT_TRUE(sink_.WaitForGone(sent));
    ASSERT_TRUE(scheduler_->WaitUntilIdleForTest(Soon()));
  }
  EXPECT_EQ(sizes, std::vector<size_t>(40, 3));
}

TEST_F(BatchSchedulerTest, ABatchOnTheReactorMayTakeAsLongAsItsRequestsOneByOne) {
  std::thread::id last;
  auto options = Dynamic(8);
  options.pool.inline_budget = std::chrono::milliseconds(20);
  Make(std::move(options), 1, true, [&](std::span<core::RequestPtr> batch) {
    last = std::this_thread::get_id();
    const uint64_t end_ns = base::ThreadUse::Now().cpu_ns + batch.size() * 8'000'000;
    while (base::ThreadUse::Now().cpu_ns < end_ns) {
    }
  });
  for (size_t round = 1; round <= 34; ++round) {
    for (int i = 0; i < 3; ++i) EnqueueOnReactor();
    rounds_.EndRound();
    ASSERT_TRUE(sink_.WaitForGone(3 * round));
    ASSERT_TRUE(scheduler_->WaitUntilIdleForTest(Soon()));
  }
  EXPECT_EQ(last, rounds_thread_);
}

TEST_F(BatchSchedulerTest, SendsAPartialBatchWhenItsDelayIsOver) {
  auto options = Dynamic(8);
  // Long enough for the three to meet.
  options.policy.max_queue_delay = std::chrono::milliseconds(500);
  std::vector<size_t> sizes;
  Make(std::move(options), 1, false,
       [&](std::span<core::RequestPtr> batch) { sizes.push_back(batch.size()); });
  for (int i = 0; i < 3; ++i) scheduler_->Enqueue(Request());
  EXPECT_TRUE(sink_.WaitForGone(3));
  EXPECT_EQ(sizes, std::vector<size_t>{3});
}

TEST_F(BatchSchedulerTest, CompletesACancelledRequestWhileItWaits) {
  std::promise<void> entered;
  std::promise<void> leave;
  bool first = true;
  Make({}, 1, false, [&](std::span<core::RequestPtr>) {
    if (!std::exchange(first, false)) return;
    entered.set_value();
    leave.get_future().wait();
  });
  scheduler_->Enqueue(Request());
  entered.get_future().wait();
  core::RequestPtr request = Request();
  core::RequestRef keep(*request);
  scheduler_->Enqueue(std::move(request));
  keep->Cancel();
  scheduler_->OnCancelled(*keep);
  EXPECT_EQ(sink_.results(),
            std::vector<std::string>{"[request id: <id_unknown>] Request cancelled"});
  EXPECT_EQ(model_->statistics().Read().pending_count, 0u);
  leave.set_value();
  keep.Reset();
  EXPECT_TRUE(sink_.WaitForGone(2));
}

TEST_F(BatchSchedulerTest, RejectsAnExpiredRequestInPlainWordsWhileTheInstanceIsBusy) {
  std::promise<void> entered;
  std::promise<void> leave;
  auto options = Dynamic(1);
  options.policy.default_queue_policy = {.default_timeout_microseconds = UINT64_C(3'600'000'000),
                                         .allow_timeout_override = true};
  Make(std::move(options), 1, false, [&](std::span<core::RequestPtr>) {
    entered.set_value();
    leave.get_future().wait();
  });
  scheduler_->Enqueue(Request());
  entered.get_future().wait();
  core::RequestPtr hasty = Request();
  hasty->timeout_us = 1000;
  scheduler_->Enqueue(std::move(hasty));
  EXPECT_TRUE(sink_.WaitForGone(1));
  EXPECT_EQ(sink_.results(), std::vector<std::string>{"Request timeout expired"});
  leave.set_value();
  EXPECT_TRUE(sink_.WaitForGone(2));
}

// Preferred sizes of 4 and 8, with an hour to wait for them: one request of 1 row and two of 2
// wait.
class UnluckySizeTest : public BatchSchedulerTest {
 protected:
  void MakeAndFill(config::QueuePolicy::TimeoutAction action, uint64_t first_timeout_us) {
    auto options = Dynamic(8);
    options.policy.preferred_batch_sizes = {4, 8};
    options.policy.max_queue_delay = std::chrono::hours(1);
    options.policy.default_queue_policy = {.timeout_action = action,
                                           .default_timeout_microseconds = UINT64_C(3'600'000'000),
                                           .allow_timeout_override = true};
    Make(std::move(options), 1, false,
         [&](std::span<core::RequestPtr> batch) { sizes_.push_back(batch.size()); });
    Send(1, first_timeout_us);
    Send(2, 0);
    Send(2, 0);
  }
  void Send(int64_t rows, uint64_t timeout_us) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {rows, 16});
    request->timeout_us = timeout_us;
    if (!first_) first_ = core::RequestRef(*request);
    scheduler_->Enqueue(std::move(request));
  }

  core::RequestRef first_;
  std::vector<size_t> sizes_;
};

//
TEST_F(UnluckySizeTest, TheOthersRunWhenARequestHasExpired) {
  MakeAndFill(config::QueuePolicy::TimeoutAction::kReject, 20'000);
  first_.Reset();
  EXPECT_TRUE(sink_.WaitForGone(3));
  EXPECT_EQ(std::ranges::count(sink_.results(), "Request timeout expired"), 1);
  EXPECT_EQ(sizes_, std::vector<size_t>{2});
}

TEST_F(UnluckySizeTest, TheOthersRunWhenARequestHasLostItsTurn) {
  MakeAndFill(config::QueuePolicy::TimeoutAction::kDelay, 20'000);
  first_.Reset();
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_EQ(sizes_, std::vector<size_t>{2});
  EXPECT_EQ(model_->statistics().Read().pending_count, 1u);
}

TEST_F(UnluckySizeTest, TheOthersRunWhenARequestIsCancelled) {
  MakeAndFill(config::QueuePolicy::TimeoutAction::kReject, 0);
  first_->Cancel();
  scheduler_->OnCancelled(*first_);
  first_.Reset();
  EXPECT_TRUE(sink_.WaitForGone(3));
  EXPECT_EQ(sizes_, std::vector<size_t>{2});
}

TEST_F(BatchSchedulerTest, ARequestThatWasCancelledBeforeItArrivesDoesNotWait) {
  auto options = Dynamic(8);
  options.policy.max_queue_delay = std::chrono::hours(1);
  Make(std::move(options), 1, false, {});
  core::RequestPtr request = Request();
  request->Cancel();
  scheduler_->Enqueue(std::move(request));
  EXPECT_TRUE(sink_.WaitForGone(1));
  EXPECT_EQ(sink_.results(),
            std::vector<std::string>{"[request id: <id_unknown>] Request cancelled"});
}

TEST_F(BatchSchedulerTest, RefusesRequestsAfterStopAndFinishesThoseBefore) {
  std::atomic<int> runs{0};
  Make({}, 2, false, [&](std::span<core::RequestPtr>) { ++runs; });
  for (int i = 0; i < 20; ++i) scheduler_->Enqueue(Request());
  EXPECT_TRUE(scheduler_->Stop(Soon()));
  EXPECT_EQ(runs, 20);
  scheduler_->Enqueue(Request());
  EXPECT_TRUE(sink_.WaitForGone(21));
  EXPECT_EQ(
      sink_.results().back(),
      "[request id: <id_unknown>] Server is stopping, scheduler for model has stopped accepting "
      "new inference requests");
}

// Each instance warms up only while the other does, too.
std::function<base::Status(core::Instance&)> MeetEachOther(base::Mutex& mutex,
                                                           base::CondVar& changed, int& here) {
  return [&](core::Instance& instance) -> base::Status {
    base::MutexLock lock(mutex);
    ++here;
    changed.NotifyAll();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (here < 2) {
      if (!changed.WaitUntil(mutex, deadline)) return base::InternalError("alone");
    }
    return instance.name() == "instance_0" ? base::UnavailableError("not today") : base::OkStatus();
  };
}

TEST_F(BatchSchedulerTest, StartsInstancesConcurrentlyIfAllowed) {
  base::Mutex mutex;
  base::CondVar changed;
  int here = 0;
  model_ = core::MakeFakeModel(0, {16});
  std::vector<NewInstance> list;
  for (const char* name : {"instance_0", "instance_1"}) {
    list.emplace_back(std::make_unique<core::FakeInstance>(name, false, nullptr));
  }
  BatchSchedulerOptions options;
  options.pool.starts_in_parallel = true;
  options.pool.warm_up = MeetEachOther(mutex, changed, here);
  const auto made =
      BatchScheduler::Create(*model_, context_.Get(), std::move(options), std::move(list));
  EXPECT_EQ(made.status().ToString(), "Unavailable: not today");
  EXPECT_EQ(here, 2);
}

}  // namespace
}  // namespace nereid::schedule
