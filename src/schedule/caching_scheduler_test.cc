// SPDX-License-Identifier: Apache-2.0
#include "schedule/caching_scheduler.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/no_wait.h"
#include "base/task_pool.h"
#include "core/response.h"
#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

// Remembers one key: the first one that is inserted.
class OneEntryCache final : public core::ResponseCache {
 public:
  // From now on calls are made on threads of this, and wait while `gate` is locked.
  void Hang(base::Mutex& gate) {
    gate_ = &gate;
    threads_.emplace("cache", 4);
  }
  bool WaitForThreads() { return threads_->WaitUntilIdle(base::TimePoint::max()); }

  base::TaskPool* threads() override { return threads_ ? &*threads_ : nullptr; }
  base::Status Lookup(const core::CacheKey& key, core::Response&) override {
    PassGate();
    return has_ && key.text == key_.text ? base::OkStatus() : base::NotFoundError("not there");
  }
  base::Status Insert(const core::CacheKey& key, const core::Response&) override {
    PassGate();
    if (has_) return base::UnavailableError("full");
    has_ = true;
    key_ = key;
    return base::OkStatus();
  }

 private:
  void PassGate() {
    if (gate_ != nullptr) const base::MutexLock lock(*gate_);
  }

  bool has_ = false;
  core::CacheKey key_;
  base::Mutex* gate_ = nullptr;
  std::optional<base::TaskPool> threads_;
};

// Keeps requests until the test completes them.
class WaitingScheduler final : public core::Scheduler {
 public:
  explicit WaitingScheduler(std::vector<core::RequestPtr>& waiting) : waiting_(waiting) {}
  void Enqueue(core::RequestPtr request) override {
    waiting_.push_back(std::move(request));
    may_wait_ = !base::NoWaitScope::IsHere();
  }
  // Whether the last request came from a thread that may wait.
  bool may_wait() const { return may_wait_; }
  void OnCancelled(core::Request&) override {}
  bool Stop(base::TimePoint) override { return true; }

 private:
  std::vector<core::RequestPtr>& waiting_;
  bool may_wait_ = false;
};

// Remembers whether responses come from threads that may wait for the client.
class WaitingSink final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr, bool) override {
    ++sent;
    if (!base::NoWaitScope::IsHere()) ++sent_by_waiting_thread;
  }
  void OnRequestGone() override {}

  int sent = 0;
  int sent_by_waiting_thread = 0;
};

class CachingSchedulerTest : public testing::Test {
 protected:
  CachingSchedulerTest() {
    core::ModelOptions options;
    auto config = std::make_shared<config::ModelConfig>();
    config->response_cache = true;
    options.config = config;
    model_ = std::make_unique<core::Model>(std::move(options));
  }

  std::unique_ptr<CachingScheduler> MakeScheduler(bool keeps_order) {
    return std::make_unique<CachingScheduler>(std::make_unique<WaitingScheduler>(waiting_),
                                              ResponseCaching::ForModel(*model_, &cache_),
                                              keeps_order);
  }
  // Makes a request that differs from others by `parameter`.
  core::RequestPtr MakeRequest(int64_t parameter) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1});
    request->parameters.push_back({"question", parameter});
    return request;
  }
  // Completes the oldest request that waits.
  void CompleteOne(base::Status error = {}) {
    core::RequestPtr request = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    core::ResponsePtr response = core::Response::Create(*request);
    response->SetError(std::move(error));
    Complete(std::move(request), std::move(response));
  }

  std::unique_ptr<core::Model> model_;
  OneEntryCache cache_;
  core::FakeSink sink_;
  std::vector<core::RequestPtr> waiting_;
};

TEST_F(CachingSchedulerTest, CachedRequestsNeverReachTheScheduler) {
  const auto scheduler = MakeScheduler(false);
  scheduler->Enqueue(MakeRequest(1));
  CompleteOne();
  scheduler->Enqueue(MakeRequest(1));
  EXPECT_TRUE(waiting_.empty());
  EXPECT_EQ(sink_.final_count(), 2u);
  EXPECT_TRUE(sink_.WaitForGone(2));
}

TEST_F(CachingSchedulerTest, CachedResponsesOvertakeIfNoOrderIsPreserved) {
  const auto scheduler = MakeScheduler(false);
  scheduler->Enqueue(MakeRequest(1));
  CompleteOne();
  scheduler->Enqueue(MakeRequest(2));
  scheduler->Enqueue(MakeRequest(1));
  EXPECT_EQ(sink_.final_count(), 2u);
  CompleteOne(base::InternalError("slow"));
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"", "", "slow"}));
}

TEST_F(CachingSchedulerTest, CachedResponsesWaitForTheirTurnIfOrderIsPreserved) {
  const auto scheduler = MakeScheduler(true);
  scheduler->Enqueue(MakeRequest(1));
  CompleteOne();
  scheduler->Enqueue(MakeRequest(2));
  scheduler->Enqueue(MakeRequest(1));
  EXPECT_EQ(sink_.final_count(), 1u);
  CompleteOne(base::InternalError("slow"));
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"", "slow", ""}));
  EXPECT_TRUE(sink_.WaitForGone(3));
}

TEST_F(CachingSchedulerTest, OnceStoppedEverythingGoesToTheScheduler) {
  const auto scheduler = MakeScheduler(false);
  scheduler->Enqueue(MakeRequest(1));
  CompleteOne();
  EXPECT_TRUE(scheduler->Stop(std::chrono::steady_clock::now()));
  scheduler->Enqueue(MakeRequest(1));
  EXPECT_EQ(waiting_.size(), 1u);
  waiting_.clear();
}

TEST_F(CachingSchedulerTest, NobodyWaitsWhileTheCacheHangs) {
  base::Mutex gate;
  cache_.Hang(gate);
  const auto scheduler = MakeScheduler(false);
  {
    const base::MutexLock lock(gate);
    scheduler->Enqueue(MakeRequest(1));
    EXPECT_TRUE(waiting_.empty());
  }
  EXPECT_TRUE(cache_.WaitForThreads());
  ASSERT_EQ(waiting_.size(), 1u);
  {
    const base::MutexLock lock(gate);
    CompleteOne();
    EXPECT_EQ(sink_.final_count(), 0u);
  }
  EXPECT_TRUE(cache_.WaitForThreads());
  EXPECT_EQ(sink_.final_count(), 1u);
  scheduler->Enqueue(MakeRequest(1));
  EXPECT_TRUE(cache_.WaitForThreads());
  EXPECT_TRUE(waiting_.empty());
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"", ""}));
}

TEST_F(CachingSchedulerTest, TheTimeInTheQueueBeginsAfterALookupThatMayTakeLong) {
  base::Mutex gate;
  cache_.Hang(gate);
  const auto scheduler = MakeScheduler(false);
  core::RequestPtr request = MakeRequest(1);
  // As the engine does for a request without a frontend.
  request->times.queue_start_ns = request->times.request_start_ns;
  scheduler->Enqueue(std::move(request));
  EXPECT_TRUE(cache_.WaitForThreads());
  ASSERT_EQ(waiting_.size(), 1u);
  EXPECT_EQ(waiting_[0]->times.queue_start_ns, 0u) << "the scheduler sets it";
  CompleteOne();
  EXPECT_TRUE(cache_.WaitForThreads());
}

// All requests share the cache's threads.
TEST_F(CachingSchedulerTest, ThreadsOfTheCacheDoNotWaitForClients) {
  base::Mutex gate;
  cache_.Hang(gate);
  auto waiting = std::make_unique<WaitingScheduler>(waiting_);
  const WaitingScheduler& behind = *waiting;
  CachingScheduler scheduler(std::move(waiting), ResponseCaching::ForModel(*model_, &cache_),
                             false);
  WaitingSink sink;
  for (int round = 0; round < 2; ++round) {
    scheduler.Enqueue(core::MakeFakeRequest(*model_, sink, {1}));
    EXPECT_TRUE(cache_.WaitForThreads());
    if (round == 0) CompleteOne();
    EXPECT_TRUE(cache_.WaitForThreads());
  }
  EXPECT_FALSE(behind.may_wait());
  EXPECT_EQ(sink.sent, 2);
  EXPECT_EQ(sink.sent_by_waiting_thread, 0);
}

TEST_F(CachingSchedulerTest, TheOrderOfArrivalCountsNotThatOfLookups) {
  base::Mutex gate;
  cache_.Hang(gate);
  const auto scheduler = MakeScheduler(true);
  scheduler->Enqueue(MakeRequest(1));
  EXPECT_TRUE(cache_.WaitForThreads());
  CompleteOne();
  EXPECT_TRUE(cache_.WaitForThreads());
  scheduler->Enqueue(MakeRequest(2));
  scheduler->Enqueue(MakeRequest(1));
  EXPECT_TRUE(cache_.WaitForThreads());
  EXPECT_EQ(sink_.final_count(), 1u);
  CompleteOne(base::InternalError("slow"));
  EXPECT_TRUE(sink_.WaitForGone(3));
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"", "slow", ""}));
}

TEST_F(CachingSchedulerTest, StopWaitsForLookups) {
  base::Mutex gate;
  cache_.Hang(gate);
  const auto scheduler = MakeScheduler(false);
  {
    const base::MutexLock lock(gate);
    scheduler->Enqueue(MakeRequest(1));
    EXPECT_FALSE(scheduler->Stop(std::chrono::steady_clock::now()));
    // Later ones are not looked up.
    scheduler->Enqueue(MakeRequest(2));
    EXPECT_EQ(waiting_.size(), 1u);
  }
  EXPECT_TRUE(scheduler->Stop(base::TimePoint::max()));
  EXPECT_EQ(waiting_.size(), 2u);
  waiting_.clear();
}

}  // namespace
}  // namespace nereid::schedule
