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
    queue_.reset();  // before the model that its requests pin
    model_ = core::MakeFakeModel(static_cast<int64_t>(policy.max_batch_size), dims);
    queue_ = std::make_unique<BatchQueue>(*model_, std::move(policy));
  }
  struct Wish {
    std::string_view id;
    uint64_t priority = 0;
    uint64_t timeout_us = 0;
    uint64_t at_us = 0;
    uint64_t deadline_us = 0;  // 0: none
  };
  void Push(std::initializer_list<int64_t> shape, uint64_t at_us = 0) {
    EXPECT_TRUE(Push(shape, Wish{.at_us = at_us}));
  }
  bool Push(std::initializer_list<int64_t> shape, Wish wish) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, shape);
    request->id = wish.id;
    request->priority = wish.priority;
    request->timeout_us = wish.timeout_us;
    request->times.queue_start_ns = kStart + wish.at_us * 1000;
    if (wish.deadline_us != 0) request->deadline_ns = kStart + wish.deadline_us * 1000;
    return queue_->Push(request);
  }
  // Takes the next batch; returns its ids.
  std::string TakeAt(uint64_t us) {
    std::vector<core::RequestPtr> batch;
    const BatchDecision decision = queue_->Decide(0, kStart + us * 1000);
    if (decision.request_count > 0) queue_->Take(0, decision, batch);
    return Ids(batch);
  }
  std::string ExpiredAt(uint64_t us) {
    std::vector<core::RequestPtr> expired;
    while (core::RequestPtr request = queue_->PopExpired(kStart + us * 1000)) {
      expired.push_back(std::move(request));
    }
    return Ids(expired);
  }
  static std::string Ids(const std::vector<core::RequestPtr>& requests) {
    std::string ids;
    for (const core::RequestPtr& request : requests) ids += request->id;
    return ids;
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
  Make(
      {.max_batch_size = 8, .preferred_batch_sizes = {2, 4}, .max_queue_delay = microseconds(100)});
  Push({1, 16});
  EXPECT_EQ(ReadyAt(0), 0u);
  Push({1, 16});
  EXPECT_EQ(ReadyAt(0), 2u);
  for (int i = 0; i < 3; ++i) Push({1, 16});
  EXPECT_EQ(ReadyAt(0), 4u);
}

TEST_F(BatchQueueTest, SendsEverythingWaitingOnceTheOldestHasWaitedItsDelay) {
  Make({.max_batch_size = 8, .preferred_batch_sizes = {4}, .max_queue_delay = microseconds(100)});
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

// D-11. Only models with shape tensors, which no backend of ours serves, need this.
TEST_F(BatchQueueTest, ComparesTheValuesOfShapeTensors) {
  core::ModelTensor shape_tensor;
  shape_tensor.name = "INPUT0";
  shape_tensor.type = tensor::DataType::kInt32;
  shape_tensor.dims = {2};
  shape_tensor.model_dims = {2};
  shape_tensor.is_shape_tensor = true;
  core::ModelOptions options;
  options.name = "model";
  options.version = 1;
  options.config = std::make_shared<const config::ModelConfig>();
  options.inputs.push_back(shape_tensor);
  options.max_batch_size = 8;
  model_ = std::make_unique<core::Model>(std::move(options));
  queue_ =
      std::make_unique<BatchQueue>(*model_, BatchPolicy{.is_dynamic = true, .max_batch_size = 8});
  const int32_t values[3][2] = {{1, 2}, {1, 2}, {1, 3}};
  for (const auto& value : values) {
    core::RequestPtr request = core::Request::Create(sink_);
    core::RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kInt32);
    input.shape = {2};
    input.Append({.data = reinterpret_cast<const std::byte*>(value), .size = sizeof value});
    request->batch_size = 1;
    EXPECT_TRUE(queue_->Push(request));
  }
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

TEST_F(BatchQueueTest, SaysWhyABatchIsClosed) {
  Make({.max_batch_size = 4, .preferred_batch_sizes = {2}, .max_queue_delay = microseconds(100)},
       {-1});
  const auto reason_at = [&](uint64_t us) { return queue_->Decide(0, kStart + us * 1000).reason; };
  Push({1, 4});
  EXPECT_EQ(reason_at(100), core::BatchClosed::kDelay);
  Push({1, 4});
  EXPECT_EQ(reason_at(0), core::BatchClosed::kPreferred);
  EXPECT_EQ(TakeAt(0).size(), 0u);  // two requests without an id
  Push({1, 4});
  Push({1, 5});
  EXPECT_EQ(reason_at(0), core::BatchClosed::kIncompatible);
  EXPECT_EQ(TakeAt(0), "");
  Push({4, 5});
  EXPECT_EQ(reason_at(0), core::BatchClosed::kFull);
}

TEST_F(BatchQueueTest, ServesHigherPrioritiesFirstAndContinuesWithTheNextLevel) {
  Make({.max_batch_size = 3, .priority_levels = 3, .default_priority_level = 2});
  Push({1, 16}, Wish{.id = "a", .priority = 3});
  Push({1, 16}, Wish{.id = "b"});                 // the default: 2
  Push({1, 16}, Wish{.id = "c", .priority = 9});  // there is no level 9: the default
  Push({1, 16}, Wish{.id = "d", .priority = 1});
  EXPECT_EQ(TakeAt(0), "dbc");
  EXPECT_EQ(TakeAt(0), "a");
}

TEST_F(BatchQueueTest, KeepsOnlyLevelsThatHaveRequests) {
  Make({.max_batch_size = 4, .priority_levels = UINT64_MAX, .default_priority_level = UINT64_MAX});
  Push({1, 16}, Wish{.id = "last"});
  Push({1, 16}, Wish{.id = "first,", .priority = UINT64_MAX - 1});
  EXPECT_EQ(TakeAt(0), "first,last");
}

TEST_F(BatchQueueTest, RefusesWhatFindsItsLevelFull) {
  Make({.max_batch_size = 4,
        .priority_levels = 2,
        .default_priority_level = 1,
        .default_queue_policy = {.max_queue_size = 2},
        .priority_queue_policy = {{2, {.max_queue_size = 1}}}});
  EXPECT_TRUE(Push({1, 16}, Wish{.id = "a"}));
  EXPECT_TRUE(Push({1, 16}, Wish{.id = "b"}));
  EXPECT_FALSE(Push({1, 16}, Wish{.id = "c"}));
  EXPECT_TRUE(Push({1, 16}, Wish{.id = "d", .priority = 2}));
  EXPECT_FALSE(Push({1, 16}, Wish{.id = "e", .priority = 2}));
  EXPECT_EQ(TakeAt(0), "abd");
  EXPECT_TRUE(Push({1, 16}, Wish{.id = "f"}));
}

TEST_F(BatchQueueTest, RejectsExpiredRequests) {
  Make({.max_batch_size = 4,
        .default_queue_policy = {.default_timeout_microseconds = 100,
                                 .allow_timeout_override = true}});
  Push({1, 16}, Wish{.id = "a"});
  Push({1, 16}, Wish{.id = "b", .timeout_us = 50});
  Push({1, 16}, Wish{.id = "c", .timeout_us = 5000});  // cannot be lengthened
  Push({1, 16}, Wish{.id = "d", .at_us = 80});
  EXPECT_EQ(queue_->NextExpiry(), kStart + 50'000);
  EXPECT_EQ(ExpiredAt(49), "");
  EXPECT_EQ(ExpiredAt(50), "b");
  EXPECT_EQ(ExpiredAt(100), "ac");
  EXPECT_EQ(TakeAt(100), "d");
  EXPECT_EQ(queue_->NextExpiry(), std::nullopt);
}

TEST_F(BatchQueueTest, ARequestsOwnTimeoutCountsOnlyWhereItMayAndThereIsADefault) {
  Make({.max_batch_size = 4, .default_queue_policy = {.allow_timeout_override = true}});
  Push({1, 16}, Wish{.id = "a", .timeout_us = 1});
  EXPECT_EQ(queue_->NextExpiry(), std::nullopt);
  Make({.max_batch_size = 4, .default_queue_policy = {.default_timeout_microseconds = 100}});
  Push({1, 16}, Wish{.id = "a", .timeout_us = 1});
  EXPECT_EQ(queue_->NextExpiry(), kStart + 100'000);
}

TEST_F(BatchQueueTest, PutsDelayedRequestsBehindAllOthersOfTheirLevel) {
  Make({.max_batch_size = 1,
        .priority_levels = 2,
        .default_priority_level = 1,
        .default_queue_policy = {.timeout_action = config::QueuePolicy::TimeoutAction::kDelay,
                                 .default_timeout_microseconds = 100,
                                 .allow_timeout_override = true}});
  Push({1, 16}, Wish{.id = "a"});
  Push({1, 16}, Wish{.id = "b", .timeout_us = 50});
  Push({1, 16}, Wish{.id = "c", .at_us = 100});
  Push({1, 16}, Wish{.id = "d", .priority = 2, .at_us = 100});
  EXPECT_EQ(ExpiredAt(150), "");
  std::string order;
  for (int i = 0; i < 4; ++i) order += TakeAt(150);
  EXPECT_EQ(order, "cbad");
}

TEST_F(BatchQueueTest, RemovesWhatWasDelayedOrExpired) {
  Make({.max_batch_size = 4,
        .default_queue_policy = {.timeout_action = config::QueuePolicy::TimeoutAction::kDelay,
                                 .default_timeout_microseconds = 100}});
  core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 16});
  request->times.queue_start_ns = kStart;
  core::Request& address = *request;
  EXPECT_TRUE(queue_->Push(request));
  Push({1, 16}, Wish{.id = "b"});
  EXPECT_EQ(ExpiredAt(200), "");
  EXPECT_NE(queue_->Remove(address), nullptr);
  EXPECT_EQ(TakeAt(200), "b");
  EXPECT_FALSE(queue_->HasWaiting());
}

TEST_F(BatchQueueTest, HoldsTheFirstBatchUntilEnoughWait) {
  Make({.max_batch_size = 4, .hold_until_waiting = 3});
  Push({1, 16}, Wish{.id = "a"});
  Push({1, 16}, Wish{.id = "b"});
  EXPECT_EQ(TakeAt(0), "");
  Push({1, 16}, Wish{.id = "c"});
  EXPECT_EQ(TakeAt(0), "abc");
  Push({1, 16}, Wish{.id = "d"});
  EXPECT_EQ(TakeAt(0), "d");
}

// Rejects every request whose id is in `refused_`, and counts its calls.
class FakeStrategy final : public core::BatchStrategy {
 public:
  explicit FakeStrategy(std::string refused) : refused_(std::move(refused)) {}
  void Begin() override { ++batches; }
  bool Includes(core::Request& request) override {
    return refused_.find(request.id) == std::string::npos;
  }
  int batches = 0;

 private:
  const std::string refused_;
};

TEST_F(BatchQueueTest, LetsTheModelsOwnRuleCloseABatch) {
  FakeStrategy strategy("c");
  model_ = core::MakeFakeModel(8, {16});
  queue_ = std::make_unique<BatchQueue>(
      *model_, BatchPolicy{.is_dynamic = true, .max_batch_size = 8}, &strategy);
  for (const std::string_view id : {"a", "b", "c", "d"}) Push({1, 16}, Wish{.id = id});
  EXPECT_EQ(TakeAt(0), "ab");
  // A request that it never accepts still runs, alone or as the first.
  EXPECT_EQ(TakeAt(0), "cd");
  EXPECT_EQ(strategy.batches, 2);
}

TEST_F(BatchQueueTest, DropsARequestWhoseDeadlineHasPassedWithoutAnyQueuePolicy) {
  Make({.max_batch_size = 8});
  Push({1, 16}, {.id = "a", .deadline_us = 100});
  Push({1, 16}, {.id = "b"});
  EXPECT_EQ(queue_->NextExpiry(), kStart + 100'000);
  EXPECT_EQ(ExpiredAt(99), "");
  EXPECT_EQ(TakeAt(100), "b");
  EXPECT_EQ(ExpiredAt(100), "a");
}

TEST_F(BatchQueueTest, DelaysARequestAtItsTimeoutAndDropsItAtItsDeadline) {
  BatchPolicy policy{.max_batch_size = 1};
  policy.default_queue_policy = {.timeout_action = config::QueuePolicy::TimeoutAction::kDelay,
                                 .default_timeout_microseconds = 50};
  Make(policy);
  Push({1, 16}, {.id = "a", .deadline_us = 100});
  Push({1, 16}, {.id = "b", .at_us = 20});
  EXPECT_EQ(TakeAt(60), "b");
  EXPECT_EQ(queue_->NextExpiry(), kStart + 100'000);
  EXPECT_EQ(ExpiredAt(100), "a");
  EXPECT_FALSE(queue_->HasWaiting());
}

TEST_F(BatchQueueTest, RejectsAtTheEarlierOfTimeoutAndDeadline) {
  BatchPolicy policy{.max_batch_size = 8};
  policy.default_queue_policy = {.default_timeout_microseconds = 50};
  Make(policy);
  Push({1, 16}, {.id = "a", .deadline_us = 100});
  Push({1, 16}, {.id = "b", .deadline_us = 30});
  EXPECT_EQ(ExpiredAt(30), "b");
  EXPECT_EQ(ExpiredAt(50), "a");
}

TEST_F(BatchQueueTest, CountsOnlyRequestsThatRunEarlierAsAhead) {
  Make({.max_batch_size = 8, .priority_levels = 3, .default_priority_level = 2});
  Push({1, 16}, {.id = "a", .priority = 1});
  Push({1, 16}, {.id = "b", .priority = 2});
  Push({1, 16}, {.id = "c", .priority = 3});
  core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 16});
  EXPECT_EQ(queue_->CountAhead(*request), 2u);
  request->priority = 1;
  EXPECT_EQ(queue_->CountAhead(*request), 1u);
  request->priority = 3;
  EXPECT_EQ(queue_->CountAhead(*request), 3u);
}

TEST_F(BatchQueueTest, HearsARequestsOwnTimeoutOnlyWhereThePolicyRejectsAndAllowsIt) {
  const auto own = [&](config::QueuePolicy policy, uint64_t timeout_us) {
    Make({.max_batch_size = 8, .default_queue_policy = policy});
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 16});
    request->timeout_us = timeout_us;
    return queue_->OwnTimeoutNs(*request);
  };
  config::QueuePolicy policy{.default_timeout_microseconds = 50, .allow_timeout_override = true};
  EXPECT_EQ(own(policy, 30), 30'000u);
  EXPECT_EQ(own(policy, 50), 0u);
  EXPECT_EQ(own(policy, 0), 0u);
  policy.allow_timeout_override = false;
  EXPECT_EQ(own(policy, 30), 0u);
  policy.allow_timeout_override = true;
  policy.timeout_action = config::QueuePolicy::TimeoutAction::kDelay;
  EXPECT_EQ(own(policy, 30), 0u);
}

}  // namespace
}  // namespace nereid::schedule
