// SPDX-License-Identifier: Apache-2.0
#include "core/cancel_handle.h"

#include <atomic>
#include <utility>

#include <gtest/gtest.h>

#include "core/testing/cancel_race.h"

namespace nereid::core {
namespace {

// The sink of one request, with a frontend's handle to cancel it.
class Call final : public ResponseSink {
 public:
  RequestPtr Start() {
    RequestPtr request = Request::Create(*this);
    cancellation.Open(*request);
    return request;
  }
  void Send(ResponsePtr /*response*/, bool /*is_final*/) override {}
  void OnRequestReleased(Request& /*request*/) override {
    if (closes) cancellation.Close();
  }
  void OnRequestGone() override { ++gone; }

  bool closes = true;
  CancelHandle cancellation;
  std::atomic<int> gone{0};
};

TEST(CancelHandle, CancelsARequestThatIsUnderWay) {
  Call call;
  RequestPtr request = call.Start();
  call.cancellation.Take()->Cancel();
  EXPECT_TRUE(request->is_cancelled());
  EXPECT_EQ(0, call.gone) << "it is still processed";
  request.reset();
  EXPECT_EQ(1, call.gone);
}

TEST(CancelHandle, GivesTheReferenceOnlyOnce) {
  Call call;
  const RequestPtr request = call.Start();
  EXPECT_TRUE(call.cancellation.Take());
  EXPECT_FALSE(call.cancellation.Take());
}

TEST(CancelHandle, KeepsTheRequestWhileItIsCancelled) {
  Call call;
  RequestPtr request = call.Start();
  RequestRef cancelling = call.cancellation.Take();
  request.reset();
  EXPECT_EQ(0, call.gone);
  cancelling.Reset();
  EXPECT_EQ(1, call.gone);
}

TEST(CancelHandle, KeepsNoRequestThatEverybodyElseHasDropped) {
  Call call;
  call.closes = false;
  RequestPtr request = call.Start();
  RequestRef responding(*request);
  request.reset();
  EXPECT_EQ(0, call.gone);
  responding.Reset();
  EXPECT_EQ(1, call.gone);
  EXPECT_FALSE(call.cancellation.Take());
}

TEST(CancelHandle, CancelsAReleasedRequestThatSomebodyStillRespondsTo) {
  Call call;
  call.closes = false;
  RequestPtr request = call.Start();
  RequestRef responding(*request);
  request.reset();
  RequestRef cancelling = call.cancellation.Take();
  ASSERT_TRUE(cancelling);
  cancelling->Cancel();
  EXPECT_TRUE(responding->is_cancelled());
  responding.Reset();
  EXPECT_EQ(0, call.gone) << "it is being cancelled";
  cancelling.Reset();
  EXPECT_EQ(1, call.gone);
}

TEST(CancelHandle, CanBeOpenedAgain) {
  Call call;
  call.closes = false;
  RequestPtr request = call.Start();
  {
    const RequestRef taken = call.cancellation.Take();
    call.cancellation.Open(*taken);
  }
  EXPECT_TRUE(call.cancellation.Take());
  request.reset();
  EXPECT_EQ(1, call.gone);
}

TEST(CancelHandle, IsTakenByOneOfManyWhoEndTheRequestOrCancelIt) {
  constexpr int kRequests = 300;
  for (int i = 0; i < kRequests; ++i) {
    Call call;
    call.closes = false;
    RequestPtr request = call.Start();
    RequestRef responding(*request);
    ReleaseWhileCancelled(std::move(request), call.cancellation, [&] { responding.Reset(); });
    ASSERT_EQ(1, call.gone) << "request " << i;
  }
}

TEST(CancelHandle, IsEmptyOnceTheRequestHasEnded) {
  Call call;
  EXPECT_FALSE(call.cancellation.Take()) << "nothing has been started";
  call.Start().reset();
  EXPECT_EQ(1, call.gone) << "the handle keeps nothing";
  EXPECT_FALSE(call.cancellation.Take());
  call.cancellation.Close();
  EXPECT_EQ(1, call.gone);
}

TEST(CancelHandle, LetsOneThreadCancelWhileOthersEndTheRequest) {
  constexpr int kRequests = 300;
  for (int i = 0; i < kRequests; ++i) {
    Call call;
    RequestPtr request = call.Start();
    ReleaseWhileCancelled(std::move(request), call.cancellation,
                          [&] { call.cancellation.Close(); });
    ASSERT_EQ(1, call.gone) << "request " << i;
  }
}

}  // namespace
}  // namespace nereid::core
