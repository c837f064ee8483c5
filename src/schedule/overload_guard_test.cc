// SPDX-License-Identifier: Apache-2.0
// What an overloaded model does with arriving requests, through its scheduler.
#include "schedule/overload_guard.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "core/testing/fakes.h"
#include "schedule/batch_scheduler.h"
#include "schedule/testing/context.h"

namespace nereid::schedule {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kHour = uint64_t{3'600} * 1'000'000'000;

class OverloadTest : public testing::Test {
 protected:
  ~OverloadTest() override {
    if (scheduler_ != nullptr) Open();
    scheduler_.reset();
  }

  // One instance, which executes while the gate is open.
  void Make(BatchSchedulerOptions options) {
    model_ = core::MakeFakeModel(0, {16});
    std::vector<NewInstance> instances;
    instances.emplace_back(std::make_unique<core::FakeInstance>(
        "instance", false, [this](std::span<core::RequestPtr> batch) {
          base::MutexLock lock(mutex_);
          ++entered_;
          for (const core::RequestPtr& request : batch) executed_ += request->id;
          changed_.NotifyAll();
          while (!is_open_) changed_.Wait(mutex_);
        }));
    scheduler_ =
        *BatchScheduler::Create(*model_, context_.Get(), std::move(options), std::move(instances));
  }
  void Open() {
    base::MutexLock lock(mutex_);
    is_open_ = true;
    changed_.NotifyAll();
  }
  void Close() {
    base::MutexLock lock(mutex_);
    is_open_ = false;
    entered_ = 0;
  }
  void WaitUntilExecuting() {
    base::MutexLock lock(mutex_);
    while (entered_ == 0) changed_.Wait(mutex_);
  }
  core::RequestPtr Request(uint64_t deadline_ns = 0) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 16});
    request->deadline_ns = deadline_ns;
    return request;
  }
  // Executes a request for at least so long while another one waits.
  void ExecuteFor(milliseconds duration) {
    const size_t before = sink_.final_count();
    Close();
    scheduler_->Enqueue(Request(base::NowNs() + kHour));
    WaitUntilExecuting();
    const uint64_t end_ns =
        base::NowNs() + static_cast<uint64_t>(std::chrono::nanoseconds(duration).count());
    scheduler_->Enqueue(Request(base::NowNs() + kHour));
    while (base::NowNs() < end_ns) std::this_thread::yield();
    Open();
    ASSERT_TRUE(sink_.WaitForGone(before + 2));
    ASSERT_TRUE(scheduler_->WaitUntilIdleForTest(std::chrono::steady_clock::now() +
                                                 std::chrono::minutes(1)));
  }
  uint64_t Count(core::Refusal reason) {
    return model_->statistics().Read().refusals[static_cast<size_t>(reason)];
  }

  TestContext context_;
  core::FakeSink sink_;
  // Enqueues a request whose id is in executed() once it is executed.
  void Send(const core::CallerRef& caller, std::string_view id) {
    core::RequestPtr request = Request();
    request->caller = caller;
    request->id = id;
    scheduler_->Enqueue(std::move(request));
  }
  std::string executed() {
    base::MutexLock lock(mutex_);
    return executed_;
  }
  static core::CallerRef MakeCaller(std::string id) {
    return std::make_shared<core::Caller>(core::Caller{.id = std::move(id), .limits = {}});
  }

  std::unique_ptr<core::Model> model_;
  std::unique_ptr<BatchScheduler> scheduler_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool is_open_ NEREID_GUARDED_BY(mutex_) = true;
  int entered_ NEREID_GUARDED_BY(mutex_) = 0;
  std::string executed_ NEREID_GUARDED_BY(mutex_);
};

TEST_F(OverloadTest, RefusesAtOnceWhatCannotBeAnsweredInTime) {
  Make({});
  ExecuteFor(milliseconds(1000));
  Close();
  scheduler_->Enqueue(Request());
  WaitUntilExecuting();
  scheduler_->Enqueue(Request(base::NowNs() + 600'000'000));
  // The instance is still executing.
  ASSERT_TRUE(sink_.WaitForGone(3));
  const std::string error = sink_.results().back();
  EXPECT_NE(error.find("model 'model' is overloaded: a response would take about"),
            std::string::npos)
      << error;
  EXPECT_EQ(Count(core::Refusal::kHopeless), 1u);
  scheduler_->Enqueue(Request(base::NowNs() + kHour));
  Open();
  ASSERT_TRUE(sink_.WaitForGone(5));
  EXPECT_EQ(sink_.results().back(), "");
}

TEST_F(OverloadTest, ExecutesARequestOnAnIdleInstanceHoweverSlowTheModelWas) {
  Make({});
  ExecuteFor(milliseconds(50));
  scheduler_->Enqueue(Request(base::NowNs() + 20'000'000));
  ASSERT_TRUE(sink_.WaitForGone(3));
  // Executed, or expired if this machine is very slow, but not refused at the door.
  EXPECT_EQ(Count(core::Refusal::kHopeless), 0u);
}

TEST_F(OverloadTest, RefusesADeadlineThatHasPassedAlready) {
  Make({});
  scheduler_->Enqueue(Request(1));
  ASSERT_TRUE(sink_.WaitForGone(1));
  EXPECT_NE(sink_.results().back().find("the deadline of the request passed before model 'model'"),
            std::string::npos);
  EXPECT_EQ(Count(core::Refusal::kExpired), 1u);
}

TEST_F(OverloadTest, DropsARequestWhoseDeadlinePassesInTheQueueBeforeItIsExecuted) {
  Make({});
  Close();
  scheduler_->Enqueue(Request());
  WaitUntilExecuting();
  scheduler_->Enqueue(Request(base::NowNs() + 1'000'000));
  // The timer answers it while the instance executes.
  ASSERT_TRUE(sink_.WaitForGone(1));
  EXPECT_NE(sink_.results().back().find("the deadline of the request passed"), std::string::npos);
  Open();
  ASSERT_TRUE(sink_.WaitForGone(2));
  base::MutexLock lock(mutex_);
  EXPECT_EQ(entered_, 1);
}

TEST_F(OverloadTest, CountsACancellationAfterTheDeadlineAsExpired) {
  Make({});
  Close();
  scheduler_->Enqueue(Request());
  WaitUntilExecuting();
  core::RequestPtr request = Request(base::NowNs() + kHour);
  const core::RequestRef waiting(*request);
  scheduler_->Enqueue(std::move(request));
  waiting->deadline_ns = 1;  // as if an hour had passed
  waiting->Cancel();
  scheduler_->OnCancelled(*waiting);
  EXPECT_EQ(Count(core::Refusal::kExpired), 1u);
}

TEST_F(OverloadTest, RefusesBeyondItsAdaptiveLimitAndServesOthersAgainLater) {
  Make({.adapts_concurrency = true});
  Close();
  for (int i = 0; i < 32; ++i) scheduler_->Enqueue(Request());
  EXPECT_EQ(sink_.final_count(), 0u);
  scheduler_->Enqueue(Request());
  ASSERT_TRUE(sink_.WaitForGone(1));
  EXPECT_NE(sink_.results().back().find("model 'model' is overloaded: 32 requests are in progress"),
            std::string::npos);
  EXPECT_EQ(Count(core::Refusal::kConcurrency), 1u);
  Open();
  ASSERT_TRUE(sink_.WaitForGone(33));
  scheduler_->Enqueue(Request());
  ASSERT_TRUE(sink_.WaitForGone(34));
  EXPECT_EQ(sink_.results().back(), "");
}

// K-2.
TEST_F(OverloadTest, LetsAQuietCallerWaitForNoMoreThanTheExecutionInProgress) {
  Make({});
  const auto busy = MakeCaller("busy");
  Close();
  Send(busy, "b");
  WaitUntilExecuting();
  for (int i = 0; i < 50; ++i) Send(busy, "b");
  std::vector<core::CallerRef> quiet;
  for (int i = 0; i < 7; ++i) quiet.push_back(MakeCaller(std::to_string(i)));
  for (int i = 0; i < 7; ++i) Send(quiet[static_cast<size_t>(i)], "q");
  Open();
  ASSERT_TRUE(sink_.WaitForGone(58));
  // At most one of the busy caller's turns lies between those of the others.
  EXPECT_LE(executed().rfind('q'), 8u) << executed();
}

// K-5.
TEST_F(OverloadTest, TakesTheRoomOfAFullQueueFromWhomeverTakesUpTheMost) {
  BatchSchedulerOptions options;
  options.policy.default_queue_policy.max_queue_size = 3;
  Make(std::move(options));
  const auto busy = MakeCaller("busy");
  const auto quiet = MakeCaller("quiet");
  Close();
  Send(busy, "1");
  WaitUntilExecuting();
  for (const char* id : {"2", "3", "4"}) Send(busy, id);
  Send(busy, "5");
  ASSERT_TRUE(sink_.WaitForGone(1));
  Send(quiet, "q");
  ASSERT_TRUE(sink_.WaitForGone(2));
  for (const std::string& error : sink_.results()) {
    EXPECT_NE(error.find("Exceeds maximum queue size"), std::string::npos) << error;
  }
  Open();
  ASSERT_TRUE(sink_.WaitForGone(6));
  EXPECT_EQ(executed().size(), 4u);
  EXPECT_EQ(executed().find('4'), std::string::npos);
  EXPECT_EQ(executed().find('5'), std::string::npos);
  EXPECT_EQ(model_->statistics().Read().pending_count, 0u);
}

// K-6.
TEST_F(OverloadTest, LetsACallerBelowItsShareJoinBeyondTheAdaptiveLimit) {
  Make({.adapts_concurrency = true});
  const auto busy = MakeCaller("busy");
  const auto quiet = MakeCaller("quiet");
  Close();
  for (int i = 0; i < 32; ++i) Send(busy, "b");
  Send(busy, "b");
  ASSERT_TRUE(sink_.WaitForGone(1));
  Send(quiet, "q");
  EXPECT_EQ(sink_.final_count(), 1u);
  Open();
  ASSERT_TRUE(sink_.WaitForGone(34));
  EXPECT_NE(executed().find('q'), std::string::npos);
}

TEST(DoorError, SaysWhenToTryAgain) {
  const auto model = core::MakeFakeModel(0, {16});
  const base::Status error =
      DoorError({.value = 30'000'000, .left_ns = 20'000'000, .after_ns = 10'000'000}, *model);
  EXPECT_EQ(error.code(), base::StatusCode::kUnavailable);
  EXPECT_EQ(error.retry_after(), milliseconds(10));
  EXPECT_EQ(error.message(),
            "model 'model' is overloaded: a response would take about 30.0 ms, and the deadline of "
            "the request is in 20.0 ms");
  EXPECT_EQ(DoorError({.reason = core::Refusal::kExpired}, *model).code(),
            base::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace nereid::schedule
