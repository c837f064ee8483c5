// SPDX-License-Identifier: Apache-2.0
#include "core/kept_response.h"

#include <atomic>
#include <utility>

#include <gtest/gtest.h>

#include "core/cancel_handle.h"
#include "core/testing/cancel_race.h"

namespace nereid::core {
namespace {

// The sink of one request, which keeps what is not the last response.
class Call final : public ResponseSink {
 public:
  RequestPtr Start() {
    RequestPtr request = Request::Create(*this);
    cancellation.Open(*request);
    return request;
  }
  void Send(ResponsePtr response, bool is_final) override {
    if (!is_final) return kept.Keep(std::move(response));
    last = kept.TakeBack();
  }
  void OnAbandoned() override {
    ++abandoned;
    kept.TakeBack().reset();
  }
  void OnRequestGone() override { ++gone; }

  CancelHandle cancellation;
  KeptResponse kept;
  ResponsePtr last;
  std::atomic<int> abandoned{0};
  std::atomic<int> gone{0};
};

TEST(KeptResponse, WaitsForTheLastOne) {
  Call call;
  RequestPtr request = call.Start();
  call.Send(Response::Create(*request), false);
  EXPECT_TRUE(call.kept);
  call.Send(nullptr, true);
  EXPECT_FALSE(call.kept);
  request.reset();
  EXPECT_EQ(0, call.gone) << "the response keeps it again";
  call.last.reset();
  EXPECT_EQ(1, call.gone);
  EXPECT_EQ(0, call.abandoned);
}

TEST(KeptResponse, KeepsNoRequestThatIsReleased) {
  Call call;
  RequestPtr request = call.Start();
  call.Send(Response::Create(*request), false);
  request.reset();
  EXPECT_EQ(1, call.abandoned);
  EXPECT_EQ(1, call.gone);
  EXPECT_FALSE(call.cancellation.Take());
}

TEST(KeptResponse, KeepsNoRequestThatWasReleasedBefore) {
  Call call;
  RequestPtr request = call.Start();
  ResponsePtr response = Response::Create(*request);
  request.reset();
  EXPECT_EQ(0, call.gone);
  call.Send(std::move(response), false);
  EXPECT_EQ(1, call.abandoned);
  EXPECT_EQ(1, call.gone);
}

TEST(KeptResponse, WaitsForWhoeverCancelsTheRequest) {
  Call call;
  RequestPtr request = call.Start();
  call.Send(Response::Create(*request), false);
  RequestRef cancelling = call.cancellation.Take();
  request.reset();
  EXPECT_EQ(0, call.gone);
  cancelling.Reset();
  EXPECT_EQ(1, call.abandoned);
  EXPECT_EQ(1, call.gone);
}

TEST(KeptResponse, IsDroppedOnceByOneOfManyWhoEndTheRequestOrCancelIt) {
  constexpr int kRequests = 300;
  for (int i = 0; i < kRequests; ++i) {
    Call call;
    RequestPtr request = call.Start();
    RequestRef factory(*request);
    call.Send(Response::Create(*request), false);
    ReleaseWhileCancelled(std::move(request), call.cancellation, [&] { factory.Reset(); });
    ASSERT_EQ(1, call.abandoned) << "request " << i;
    ASSERT_EQ(1, call.gone) << "request " << i;
  }
}

}  // namespace
}  // namespace nereid::core
