// SPDX-License-Identifier: Apache-2.0
// K-7 of docs/scheduling.md.
#include "schedule/caller_quotas.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kStart = 5'000 * kSecond;

core::CallerRef MakeCaller(std::string id, core::CallerLimits limits) {
  return std::make_shared<core::Caller>(core::Caller{.id = std::move(id), .limits = limits});
}

class CallerQuotasTest : public testing::Test {
 protected:
  core::RequestPtr Request(const core::CallerRef& caller) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {1, 16});
    request->caller = caller;
    return request;
  }
  base::Status Admit(const core::CallerRef& caller, uint64_t now_ns = kStart) {
    return quotas_.Admit(*Request(caller), now_ns);
  }

  core::FakeSink sink_;
  std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {16});
  CallerQuotas quotas_;
};

TEST_F(CallerQuotasTest, AdmitWhoeverIsNotAskedOrNotLimited) {
  EXPECT_TRUE(Admit(nullptr).ok());
  const auto free = MakeCaller("free", {});
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Admit(free).ok());
}

TEST_F(CallerQuotasTest, RefuseRequestsBeyondTheRateAndSayWhenToTryAgain) {
  const auto one = MakeCaller("one", {.requests_per_s = 2});
  const auto two = MakeCaller("two", {.requests_per_s = 2});
  EXPECT_TRUE(Admit(one).ok());
  EXPECT_TRUE(Admit(one).ok());
  const base::Status error = Admit(one);
  EXPECT_EQ(error.code(), base::StatusCode::kResourceExhausted);
  EXPECT_EQ(error.message(), "'one' has used up its limit of 2 requests per second");
  EXPECT_EQ(error.retry_after(), std::chrono::milliseconds(500));
  EXPECT_TRUE(Admit(two).ok());
  EXPECT_TRUE(Admit(one, kStart + kSecond / 2).ok());
}

TEST_F(CallerQuotasTest, SayWhatIsLeft) {
  const auto one = MakeCaller("one", {.requests_per_s = 3});
  const core::RequestPtr first = Request(one);
  ASSERT_TRUE(quotas_.Admit(*first, kStart).ok());
  EXPECT_EQ(first->quota_left.limit, 3u);
  EXPECT_EQ(first->quota_left.remaining, 2u);
  EXPECT_EQ(first->quota_left.reset_s, 1u);
  ASSERT_TRUE(Admit(one).ok());
  ASSERT_TRUE(Admit(one).ok());
  const core::RequestPtr refused = Request(one);
  ASSERT_FALSE(quotas_.Admit(*refused, kStart).ok());
  EXPECT_EQ(refused->quota_left.remaining, 0u);
  EXPECT_EQ(refused->quota_left.reset_s, 1u);
}

TEST_F(CallerQuotasTest, CountTheBytesOfInputs) {
  const auto one = MakeCaller("one", {.bytes_per_s = 128});
  const auto send = [&] {
    const core::RequestPtr request = Request(one);
    request->inputs[0].Append({.size = 64, .where = {}});
    return quotas_.Admit(*request, kStart);
  };
  EXPECT_TRUE(send().ok());
  EXPECT_TRUE(send().ok());
  EXPECT_EQ(send().message(), "'one' has used up its limit of 128 bytes per second");
}

TEST_F(CallerQuotasTest, GiveAPlaceBackWhenTheRequestIsGone) {
  const auto one = MakeCaller("one", {.in_flight = 2});
  core::RequestPtr first = Request(one);
  core::RequestPtr second = Request(one);
  ASSERT_TRUE(quotas_.Admit(*first, kStart).ok());
  ASSERT_TRUE(quotas_.Admit(*second, kStart).ok());
  EXPECT_EQ(Admit(one).message(), "'one' has used up its limit of 2 requests at the same time");
  first.reset();
  EXPECT_TRUE(Admit(one).ok());
}

// For the next request of a caller who waits for it.
TEST_F(CallerQuotasTest, GiveAPlaceBackBeforeTheLastResponseIsSent) {
  const auto one = MakeCaller("one", {.in_flight = 1});
  core::RequestPtr first = Request(one);
  ASSERT_TRUE(quotas_.Admit(*first, kStart).ok());
  const core::RequestRef kept(*first);
  first->sink().Send(core::Response::Create(*first), false);
  EXPECT_FALSE(Admit(one).ok());
  first->sink().Send(nullptr, true);
  core::RequestPtr second = Request(one);
  EXPECT_TRUE(quotas_.Admit(*second, kStart).ok());
  // The end of the first is not the end of the second.
  first.reset();
  EXPECT_FALSE(Admit(one).ok());
}

TEST_F(CallerQuotasTest, TakeNothingOfOneLimitIfAnotherOneIsReached) {
  const auto one = MakeCaller("one", {.requests_per_s = 2, .in_flight = 1});
  core::RequestPtr first = Request(one);
  ASSERT_TRUE(quotas_.Admit(*first, kStart).ok());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Admit(one).ok());
  first.reset();
  EXPECT_TRUE(Admit(one).ok());
}

// The second limit of a request makes the table longer than it may get.
TEST_F(CallerQuotasTest, ForgetNobodyWhoseRequestIsBeingAdmitted) {
  core::ModelOptions options;
  options.config = std::make_shared<config::ModelConfig>();
  options.caller_limits = {.in_flight = 5};
  core::Model limited(std::move(options));
  const auto ask = [&](const core::CallerRef& caller) {
    core::RequestPtr request = core::Request::Create(sink_);
    EXPECT_TRUE(limited.TryPin());
    request->model = core::ModelHandle(limited);
    request->caller = caller;
    return request;
  };
  // Odd, so that the second limit of one of the next callers is the one that is too many.
  ASSERT_TRUE(Admit(MakeCaller("other", {.in_flight = 1})).ok());
  for (int others = 0; others < 70; ++others) {
    const auto one = MakeCaller("one", {.in_flight = 1});
    const core::RequestPtr first = ask(one);
    ASSERT_TRUE(quotas_.Admit(*first, kStart).ok());
    EXPECT_FALSE(quotas_.Admit(*ask(one), kStart).ok()) << others;
  }
}

TEST_F(CallerQuotasTest, ForgetCallersWhoUseNothing) {
  std::weak_ptr<const core::Caller> first;
  for (int i = 0; i < 1000; ++i) {
    const auto caller = MakeCaller(std::to_string(i), {.requests_per_s = 1});
    if (i == 0) first = caller;
    ASSERT_TRUE(Admit(caller, kStart + static_cast<uint64_t>(i) * 10 * kSecond).ok());
  }
  EXPECT_TRUE(first.expired());
}

TEST_F(CallerQuotasTest, TwoServersDoNotShareLimits) {
  CallerQuotas others;
  const auto one = MakeCaller("one", {.in_flight = 1});
  const core::RequestPtr first = Request(one);
  const core::RequestPtr second = Request(one);
  EXPECT_TRUE(quotas_.Admit(*first, kStart).ok());
  EXPECT_TRUE(others.Admit(*second, kStart).ok());
  EXPECT_FALSE(Admit(one).ok());
  EXPECT_FALSE(others.Admit(*Request(one), kStart).ok());
}

TEST_F(CallerQuotasTest, NeverMoreAtATimeThanTheLimitWhileCallersComeAndGo) {
  constexpr int kMost = 2;
  constexpr int kThreads = 4;
  std::vector<core::CallerRef> callers;
  for (int i = 0; i < 3; ++i) callers.push_back(MakeCaller("one", {.in_flight = kMost}));
  std::vector<std::atomic<int>> in_flight(callers.size());
  std::atomic<int> admitted{0};
  std::atomic<bool> was_exceeded{false};
  const auto work = [&](unsigned seed) {
    std::minstd_rand random(seed);
    for (int round = 0; round < 3000; ++round) {
      const size_t at = random() % callers.size();
      core::RequestPtr request = Request(callers[at]);
      if (quotas_.Admit(*request, kStart).ok()) {
        ++admitted;
        if (++in_flight[at] > kMost) was_exceeded = true;
        if (random() % 2 == 0) std::this_thread::yield();
        --in_flight[at];
      }
      request.reset();
      // Others make the table long, so that callers without requests are forgotten.
      static_cast<void>(Admit(MakeCaller("other", {.in_flight = 1})));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, i + 1);
  }
  EXPECT_FALSE(was_exceeded);
  EXPECT_GT(admitted, 0);
  for (const core::CallerRef& caller : callers) {
    std::vector<core::RequestPtr> requests;
    for (int i = 0; i < kMost; ++i) {
      requests.push_back(Request(caller));
      EXPECT_TRUE(quotas_.Admit(*requests.back(), kStart).ok());
    }
    EXPECT_FALSE(Admit(caller).ok());
  }
}

}  // namespace
}  // namespace nereid::schedule
