// SPDX-License-Identifier: Apache-2.0
#include "schedule/ordered_responses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>

#include "base/status.h"
#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

class OrderedResponsesTest : public testing::Test {
 protected:
  core::RequestPtr Join() {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 16});
    order_.Join(*request);
    return request;
  }
  static void Complete(core::RequestPtr request, const std::string& text) {
    core::CompleteWithError(std::move(request), base::InternalError(text));
  }

  std::unique_ptr<core::Model> model_ = core::MakeFakeModel(8, {16});
  core::FakeSink sink_;
  OrderedResponses order_;
};

TEST_F(OrderedResponsesTest, HoldsBackEarlyResponses) {
  core::RequestPtr a = Join(), b = Join(), c = Join();
  Complete(std::move(c), "c");
  Complete(std::move(b), "b");
  EXPECT_TRUE(sink_.results().empty());
  Complete(std::move(a), "a");
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(sink_.WaitForGone(3));
}

TEST_F(OrderedResponsesTest, SendsSeveralResponsesOfTheFirstAtOnce) {
  core::RequestPtr a = Join(), b = Join();
  a->sink().Send(core::Response::Create(*a), false);
  EXPECT_EQ(sink_.results().size(), 1u);
  core::RequestRef keep(*b);
  b.reset();
  keep->sink().Send(nullptr, true);  // an end without data
  EXPECT_EQ(sink_.final_count(), 0u);
  Complete(std::move(a), "a");
  EXPECT_EQ(sink_.final_count(), 2u);
}

TEST_F(OrderedResponsesTest, ARequestThatEndsWithoutAResponseBlocksNoOther) {
  core::RequestPtr a = Join(), b = Join();
  Complete(std::move(b), "b");
  a.reset();
  EXPECT_EQ(sink_.results(), std::vector<std::string>{"b"});
  EXPECT_TRUE(sink_.WaitForGone(2));
}

TEST_F(OrderedResponsesTest, KeepsTheOrderOfManyThreads) {
  constexpr int kRequests = 400;
  std::vector<core::RequestPtr> requests;
  for (int i = 0; i < kRequests; ++i) requests.push_back(Join());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kRequests; i += 4) {
        Complete(std::move(requests[static_cast<size_t>(i)]), std::to_string(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(sink_.WaitForGone(kRequests));
  std::vector<std::string> expected;
  for (int i = 0; i < kRequests; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(sink_.results(), expected);
}

// The line belongs to its model, which may go as soon as nothing keeps it.
class OrderedResponsesOfAClosedModelTest : public testing::Test {
 protected:
  OrderedResponsesOfAClosedModelTest() {
    for (core::RequestPtr& request : requests_) {
      request = core::MakeFakeRequest(*model_, sink_, {1, 16});
      line_->Join(*request);
    }
    model_->Close([this] {
      std::destroy_at(line_);
      memory_.fill(kGone);
    });
  }
  bool IsGoneAndUntouched() const { return std::ranges::count(memory_, kGone) == kSize; }

  static constexpr std::byte kGone{0xff};
  static constexpr ptrdiff_t kSize = sizeof(OrderedResponses);

  std::unique_ptr<core::Model> model_ = core::MakeFakeModel(8, {16});
  core::FakeSink sink_;
  alignas(OrderedResponses) std::array<std::byte, kSize> memory_{};
  OrderedResponses* const line_ = new (memory_.data()) OrderedResponses;
  std::array<core::RequestPtr, 2> requests_;
};

TEST_F(OrderedResponsesOfAClosedModelTest, EndsWithItsLastResponse) {
  core::CompleteWithError(std::move(requests_[1]), base::InternalError("b"));
  EXPECT_FALSE(IsGoneAndUntouched());
  core::CompleteWithError(std::move(requests_[0]), base::InternalError("a"));
  EXPECT_TRUE(IsGoneAndUntouched());
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(OrderedResponsesOfAClosedModelTest, EndsWithARequestWithoutAResponse) {
  core::CompleteWithError(std::move(requests_[1]), base::InternalError("b"));
  requests_[0].reset();
  EXPECT_TRUE(IsGoneAndUntouched());
  EXPECT_EQ(sink_.results(), std::vector<std::string>{"b"});
}

TEST_F(OrderedResponsesOfAClosedModelTest, EndsWithTheLastRequestIfItHasNoResponse) {
  core::CompleteWithError(std::move(requests_[0]), base::InternalError("a"));
  requests_[1].reset();
  EXPECT_TRUE(IsGoneAndUntouched());
}

}  // namespace
}  // namespace nereid::schedule
