// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_queue.h"

#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

using std::chrono::microseconds;

class BatchQueueTest : public testing::Test {
 protected:
  void Make(BatchPolicy policy, std::initializer_list<int64_t> dims = {16}) {
    policy.is_dynamic = true;
    model_ = core::MakeFakeModel(static_cast<int64_t>(policy.max_batch_size), dims);
    queue_ = std::make_unique<BatchQueue>(*model_, std::move(policy));
  }
  void Push(std::initializer_list<int64_t> shape, uint64_t at_us = 0) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, shape);
    request->times.queue_start_ns = kStart + at_us * 1000;
    EXPECT_TRUE(queue_->Push(request));
  }
  size_t ReadyAt(uint64_t us) { return queue_->Decide(0, kStart + us * 1000).request_count; }

  static constexpr uint64_t kStart = 1'000'000'000;
  core::FakeSink sink_;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<BatchQueue> queue_;
};

TEST_F(BatchQueueTest, RunsWhateverWaitsWhenThereIsNoDelay) {
  Make({.max_batch_size = 8});
  EXPECT_EQ(ReadyAt(0), 0u);
  Push({1, 16});
  EXPECT_EQ(ReadyAt(0), 1u);
  Push({2, 16});
  EXPECT_EQ(ReadyAt(0), 2u);
}

TEST_F(BatchQueueTest, NeverExceedsTheMaximumAndNeverSplitsARequest) {
  Make({.max_batch_size = 8});
  Push({3, 16});
  Push({3, 16});
  Push({3, 16});
  EXPECT_EQ(ReadyAt(0), 2u);
}

TEST_F(BatchQueueTest, TakesTheLargestPreferredSizeReached) {
  Make({.max_batch_size = 8,
        .preferred_batch_sizes = {2, 4},
        .max_queue_delay = microseconds(100)});
  Push({1, 16});
  EXPECT_EQ(ReadyAt(0), 0u);
  Push({1, 16});
  EXPECT_EQ(ReadyAt(0), 2u);
  for (int i = 0; i < 3; ++i) Push({1, 16});
  EXPECT_EQ(ReadyAt(0), 4u);
}

TEST_F(BatchQueueTest, SendsEverythingWaitingOnceTheOldestHasWaitedItsDelay) {
  Make({.max_batch_size = 8,
        .preferred_batch_sizes = {4},
        .max_queue_delay = microseconds(100)});
  Push({1, 16}, 0);
  Push({1, 16}, 50);
  const BatchDecision waiting = queue_->Decide(0, kStart + 60'000);
  EXPECT_EQ(waiting.request_count, 0u);
  EXPECT_EQ(waiting.look_again_at_ns, kStart + 100'000);
  EXPECT_EQ(ReadyAt(100), 2u);
}

TEST_F(BatchQueueTest, WaitsForTheMaximumWhenNoSizeIsPreferred) {
  Make({.max_batch_size = 4, .max_queue_delay = microseconds(100)});
  for (int i = 0; i < 3; ++i) Push({1, 16});
  EXPECT_EQ(ReadyAt(10), 0u);
  Push({1, 16});
  EXPECT_EQ(ReadyAt(10), 4u);
}

TEST_F(BatchQueueTest, ClosesABatchAtARequestOfAnotherShape) {
  Make({.max_batch_size = 8, .max_queue_delay = microseconds(100)}, {-1});
  Push({1, 4});
  Push({2, 4});
  EXPECT_EQ(ReadyAt(0), 0u);
  Push({1, 5});
  EXPECT_EQ(ReadyAt(0), 2u);
}

TEST_F(BatchQueueTest, RemovesFromTheMiddle) {
  Make({.max_batch_size = 8});
  Push({1, 16});
  core::RequestPtr middle = core::MakeFakeRequest(*model_, sink_, {1, 16});
  core::Request& address = *middle;
  EXPECT_TRUE(queue_->Push(middle));
  Push({1, 16});
  EXPECT_NE(queue_->Remove(address), nullptr);
  EXPECT_EQ(queue_->size(), 2u);
  EXPECT_EQ(ReadyAt(0), 2u);
}

}  // namespace
}  // namespace nereid::schedule
