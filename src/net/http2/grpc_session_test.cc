// SPDX-License-Identifier: Apache-2.0
// How a session connects its parts, tested with a client in memory.
#include "http2/grpc_session.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http2/testing/client.h"
#include "http2/testing/host.h"

namespace nereid::http2 {
namespace {

using std::chrono::milliseconds;
using Strings = std::vector<std::string>;

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

// Keeps its calls until the test ends.
class Handler final : public GrpcHandler {
 public:
  struct Call {
    GrpcCallRef call;
    TestEvents events;
  };
  GrpcCallEvents* OnCall(GrpcCallRef call) override {
    calls.push_back(std::make_unique<Call>());
    calls.back()->call = std::move(call);
    return &calls.back()->events;
  }
  std::vector<std::unique_ptr<Call>> calls;
};

class GrpcSessionTest : public testing::Test {
 protected:
  void Open(uint32_t client_window = 1 << 30) {
    client_ = std::make_unique<TestClient>(client_window);
    session_ = std::make_unique<GrpcSession>(options_, handler_, host_, output_, kStart);
    EXPECT_TRUE(session_->Tick(kStart));
    Exchange();
  }
  void TearDown() override {
    session_->CancelAll();
    session_.reset();
    for (const GrpcMessagePtr& message : host_.Take()) message->order.stream->Unreference();
    handler_.calls.clear();
    EXPECT_EQ(host_.holds, 0);
  }

  // Receives the client's bytes, if there are any: a connection is silent until its client sends.
  bool Receive() {
    const std::string bytes = client_->TakeOutput();
    if (bytes.empty()) return true;
    return session_->Receive(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), now_ns_);
  }
  // Executes all orders of the calls.
  void Serve() {
    for (GrpcMessagePtr& message : host_.Take()) {
      GrpcStream* const stream = message->order.stream;
      session_->Apply(std::move(message));
      stream->Unreference();
    }
  }
  // Sends at most so many bytes.
  void Write(size_t limit = SIZE_MAX) {
    for (;;) {
      if (output_.empty()) {
        EXPECT_TRUE(session_->Fill());
      }
      std::string bytes;
      for (const iovec& piece : output_.pieces()) {
        const size_t step = std::min(piece.iov_len, limit);
        bytes.append(static_cast<const char*>(piece.iov_base), step);
        limit -= step;
      }
      if (bytes.empty()) break;
      output_.Advance(bytes.size());
      client_->Feed(bytes);
    }
    session_->DeliverWaiting();
  }
  // Exchanges everything until nothing is left.
  void Exchange() {
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(Receive());
      Serve();
      Write();
    }
  }
  int32_t Call(std::string body, bool open = false, const TestClient::Headers& more = {}) {
    return client_->Call(TestClient::CallHeaders("/x", more), std::move(body), open);
  }
  // Returns the i-th call.
  GrpcCall& call(size_t i = 0) { return *handler_.calls.at(i)->call; }
  TestEvents& events(size_t i = 0) { return handler_.calls.at(i)->events; }
  static GrpcMessagePtr Message(std::string_view text) {
    GrpcMessagePtr message = GrpcMessage::Create();
    EXPECT_TRUE(message->Append(text));
    return message;
  }

  GrpcServerOptions options_;
  Handler handler_;
  TestHost host_;
  Http2Output output_;
  std::unique_ptr<TestClient> client_;
  std::unique_ptr<GrpcSession> session_;
  uint64_t now_ns_ = kStart;
};

TEST_F(GrpcSessionTest, CarriesAUnaryCall) {
  Open();
  const int32_t id = Call(Prefixed("question"));
  Exchange();
  EXPECT_EQ(events().Take(), (Strings{"question", "half-close"}));
  EXPECT_EQ(call().path(), "/x");
  EXPECT_EQ(call().start_ns(), kStart);
  call().SendAndFinish(Message("response"));
  Exchange();
  EXPECT_EQ(client_->reply(id).messages(), Strings{"response"});
  EXPECT_EQ(client_->reply(id).status(), "0");
  EXPECT_TRUE(client_->reply(id).is_closed);
  EXPECT_EQ(events().Take(), Strings{"done"});
}

TEST_F(GrpcSessionTest, ACallEndsAtItsDeadline) {
  Open();
  const int32_t id = Call(Prefixed("x"), false, {{"grpc-timeout", "50m"}});
  Exchange();
  EXPECT_EQ(session_->next_due_ns(), kStart + 50 * kMs);
  EXPECT_TRUE(session_->Tick(kStart + 50 * kMs - 1));
  Exchange();
  EXPECT_FALSE(client_->reply(id).is_closed);
  EXPECT_TRUE(session_->Tick(kStart + 50 * kMs));
  Exchange();
  EXPECT_EQ(client_->reply(id).status(), "4");
  EXPECT_EQ(events().Take(), (Strings{"x", "half-close", "cancelled", "done"}));
}

TEST_F(GrpcSessionTest, ACallThatFailsWithinAMessageOfItsResponseIsReset) {
  Open(1000);
  const int32_t id = Call(Prefixed("x"), false, {{"grpc-timeout", "50m"}});
  Exchange();
  call().Send(Message(std::string(100'000, 'r')));
  Serve();
  Write(100);
  EXPECT_TRUE(session_->Tick(kStart + 50 * kMs));
  Exchange();
  EXPECT_TRUE(client_->reply(id).is_closed);
  EXPECT_EQ(client_->reply(id).status(), "none");
  EXPECT_EQ(client_->reply(id).error_code, static_cast<uint32_t>(NGHTTP2_CANCEL));
}

// nghttp2 keeps a frame on hold that the output has no room for, with its length. Whose frame it is
// depends on the order in which nghttp2 serves the calls: here 64 frames of the others fill the
// output, so it should be that of the call at place 64.
TEST_F(GrpcSessionTest, ACallThatFailsWhileItsFrameIsOnHoldLeavesTheOthersWhole) {
  Open();
  constexpr size_t kCalls = 70;
  int held = 0;
  for (size_t place = 62; place < 68; ++place) {
    std::vector<int32_t> ids;
    std::vector<std::string> texts;
    for (size_t i = 0; i < kCalls; ++i) {
      const TestClient::Headers timeout = {{"grpc-timeout", "50m"}};
      ids.push_back(Call(Prefixed("x"), false, i == place ? timeout : TestClient::Headers()));
      texts.push_back(i == place ? "small" : Noise((16 << 10) - 5, static_cast<uint32_t>(i)));
    }
    Exchange();
    for (size_t i = 0; i < kCalls; ++i) call(i).Send(Message(texts[i]));
    Serve();
    ASSERT_TRUE(session_->Fill());
    ASSERT_TRUE(output_.full());
    now_ns_ += 50 * kMs;  // the socket takes nothing until then
    EXPECT_TRUE(session_->Tick(now_ns_));
    Write();
    for (size_t i = 0; i < kCalls; ++i) call(i).Finish(GrpcStatus::kOk, {});
    Exchange();
    for (size_t i = 0; i < kCalls; ++i) {
      const Reply& reply = client_->reply(ids[i]);
      EXPECT_TRUE(reply.is_closed);
      if (i == place) {
        const bool was_held = reply.error_code == NGHTTP2_CANCEL;
        held += was_held ? 1 : 0;
        EXPECT_EQ(reply.status(), was_held ? "none" : "4") << place;
      } else {
        EXPECT_EQ(reply.status(), "0") << i << " of " << place;
        EXPECT_TRUE(reply.messages() == Strings{texts[i]}) << i << " of " << place;
      }
    }
    handler_.calls.clear();
  }
  EXPECT_GE(held, 1);
}

TEST_F(GrpcSessionTest, AClientHasAMomentToCloseAStreamThatEndedEarly) {
  Open();
  const int32_t polite = Call(Prefixed("x"), true);
  const int32_t busy = Call(Prefixed("x"), true);
  Exchange();
  call(0).Finish(GrpcStatus::kUnavailable, "not today");
  call(1).Finish(GrpcStatus::kUnavailable, "not today");
  Exchange();
  for (const int32_t id : {polite, busy}) {
    EXPECT_EQ(client_->reply(id).status(), "14");
    EXPECT_FALSE(client_->reply(id).is_closed);
  }
  now_ns_ += kSecond;
  EXPECT_TRUE(session_->Tick(now_ns_));
  client_->SendMore(polite, "", false);
  Exchange();
  EXPECT_TRUE(client_->reply(polite).is_closed);
  EXPECT_FALSE(client_->reply(busy).is_closed);
  EXPECT_EQ(session_->next_due_ns(), now_ns_ + kSecond);
  EXPECT_TRUE(session_->Tick(now_ns_ + kSecond));
  Exchange();
  EXPECT_TRUE(client_->reply(busy).is_closed);
  EXPECT_EQ(client_->reply(busy).error_code, static_cast<uint32_t>(NGHTTP2_NO_ERROR));
}

TEST_F(GrpcSessionTest, ABodyThatIsBeingWrittenOutlivesItsStream) {
  Open();
  const int32_t id = Call(Prefixed("x"));
  Exchange();
  const std::string large = Noise(1 << 20, 1);
  int released = 0;
  GrpcMessagePtr message = GrpcMessage::Create();
  message->Refer(reinterpret_cast<const std::byte*>(large.data()), large.size());
  message->Keep(&released, [](void* count) { ++*static_cast<int*>(count); });
  call().Send(std::move(message));
  Serve();
  ASSERT_TRUE(session_->Fill());
  ASSERT_FALSE(output_.empty());
  client_->Reset(id);
  EXPECT_TRUE(Receive());
  EXPECT_EQ(events().Take(), (Strings{"x", "half-close", "cancelled", "done"}));
  EXPECT_EQ(released, 0);  // the output still refers to it
  Write();
  EXPECT_EQ(released, 1);
}

TEST_F(GrpcSessionTest, RoomIsHeldBackUntilMessagesAreCredited) {
  options_.connection_budget_bytes = 100'000;
  Open();
  const int32_t id =
      Call(Prefixed(std::string(150'000, 'x')) + Prefixed(std::string(250'000, 'y')));
  Exchange();
  EXPECT_EQ(events().Take(), Strings{"150000 bytes"});
  call().Credit(150'000);
  Exchange();
  EXPECT_EQ(events().Take(), (Strings{"250000 bytes", "half-close"}));
  client_->Reset(id);
}

TEST_F(GrpcSessionTest, TheEndOfACallGivesItsRoomBackThoughTheClientSendsNothing) {
  options_.connection_budget_bytes = 100'000;
  Open();
  const int32_t id = Call(Prefixed(std::string(150'000, 'x')));
  Call(Prefixed(std::string(300'000, 'y')));
  Exchange();
  EXPECT_EQ(events(0).Take(), (Strings{"150000 bytes", "half-close"}));
  EXPECT_EQ(events(1).Take(), Strings{});
  call(0).SendAndFinish(Message("stored"));
  Exchange();
  EXPECT_EQ(client_->reply(id).status(), "0");
  EXPECT_EQ(events(1).Take(), (Strings{"300000 bytes", "half-close"}));
}

TEST_F(GrpcSessionTest, ACreditMayComeWithAResponse) {
  options_.connection_budget_bytes = 100'000;
  Open();
  const int32_t id =
      Call(Prefixed(std::string(150'000, 'x')) + Prefixed(std::string(250'000, 'y')));
  Exchange();
  EXPECT_EQ(events().Take(), Strings{"150000 bytes"});
  GrpcMessagePtr response = GrpcMessage::Create();
  response->Append("done");
  call().Send(std::move(response), 150'000);
  Exchange();
  EXPECT_EQ(client_->reply(id).messages(), Strings{"done"});
  EXPECT_EQ(events().Take(), (Strings{"250000 bytes", "half-close"}));
  client_->Reset(id);
}

TEST_F(GrpcSessionTest, AMessageThatArrivesTooSlowlyEndsItsCall) {
  options_.message_window = milliseconds(1000);
  options_.min_message_bytes_per_s = 10;
  Open();
  const std::string framed = Prefixed(std::string(100, 'x'));
  const int32_t id = Call(framed.substr(0, 20), true);
  Exchange();
  session_->CheckProgress({.length_ms = 1000, .min_bytes = 10});
  client_->SendMore(id, framed.substr(20, 10), true);
  Exchange();
  session_->CheckProgress({.length_ms = 1000, .min_bytes = 10});
  Exchange();
  EXPECT_FALSE(client_->reply(id).is_closed);
  client_->SendMore(id, framed.substr(30, 9), true);
  Exchange();
  session_->CheckProgress({.length_ms = 1000, .min_bytes = 10});
  Exchange();
  EXPECT_EQ(client_->reply(id).status(), "4");
  EXPECT_EQ(client_->reply(id).headers.at("grpc-message"),
            "The message is arriving too slowly (9 of its 100 bytes in 1000 ms)");
}

TEST_F(GrpcSessionTest, AContentLengthMustBeKept) {
  Open();
  const int32_t less = Call(Prefixed("abc"), false, {{"content-length", "9"}});
  const int32_t more = Call(Prefixed("abc"), false, {{"content-length", "7"}});
  const int32_t exact = Call(Prefixed("abc"), false, {{"content-length", "8"}});
  Exchange();
  EXPECT_EQ(client_->reply(less).error_code, static_cast<uint32_t>(NGHTTP2_PROTOCOL_ERROR));
  EXPECT_EQ(client_->reply(more).error_code, static_cast<uint32_t>(NGHTTP2_PROTOCOL_ERROR));
  EXPECT_FALSE(client_->reply(exact).is_closed);
  EXPECT_EQ(events(2).Take(), (Strings{"abc", "half-close"}));
}

TEST_F(GrpcSessionTest, ADrainOfAnIdleConnectionWaitsForTheAckOfItsPing) {
  Open();
  Call(Prefixed("x"), true);
  Exchange();
  EXPECT_TRUE(session_->Tick(kStart + 60 * kSecond));
  // Nothing has arrived for an hour.
  const uint64_t later_ns = kStart + 3600 * kSecond;
  session_->StartDrain(later_ns);
  EXPECT_EQ(session_->next_due_ns(), later_ns + kSecond);
  EXPECT_TRUE(session_->Tick(later_ns + 1));
  Write();
  EXPECT_EQ(client_->goaways(), 1);
  EXPECT_EQ(events().Take(), (Strings{"x", "drain"}));
  now_ns_ = later_ns + 2;
  Exchange();  // the client acknowledges the ping
  EXPECT_EQ(client_->goaways(), 2);
}

TEST_F(GrpcSessionTest, AClientThatDoesNotAcknowledgeGetsTheSecondGoawayAllTheSame) {
  Open();
  Call(Prefixed("x"), true);
  Exchange();
  session_->StartDrain(kStart);
  Write();
  EXPECT_EQ(client_->goaways(), 1);
  EXPECT_TRUE(session_->Tick(kStart + kSecond));
  Write();
  EXPECT_EQ(client_->goaways(), 2);
}

TEST_F(GrpcSessionTest, AnOldConnectionDrainsAndIsOverWithItsLastCall) {
  options_.max_connection_age = milliseconds(5000);
  Open();
  const int32_t id = Call(Prefixed("x"));
  Exchange();
  EXPECT_TRUE(session_->Tick(kStart + 5 * kSecond));
  Exchange();
  EXPECT_EQ(client_->goaways(), 2);
  EXPECT_FALSE(session_->IsOver());
  EXPECT_EQ(events().Take(), (Strings{"x", "half-close", "drain"}));
  // A time that has passed is not due again, or a timer would keep firing while the call runs.
  EXPECT_TRUE(session_->Tick(kStart + 9 * kSecond));
  EXPECT_GT(session_->next_due_ns(), kStart + 9 * kSecond);
  call().SendAndFinish(Message("late"));
  Exchange();
  EXPECT_EQ(client_->reply(id).messages(), Strings{"late"});
  EXPECT_TRUE(session_->IsOver());
}

TEST_F(GrpcSessionTest, ADeadClientIsNoticed) {
  options_.keepalive_time = milliseconds(1000);
  options_.keepalive_timeout = milliseconds(100);
  Open();
  Call(Prefixed("x"), true);
  Exchange();
  EXPECT_TRUE(session_->Tick(kStart + kSecond));
  Write();
  EXPECT_EQ(client_->pings(), 1);
  EXPECT_EQ(session_->next_due_ns(), kStart + kSecond + 100 * kMs);
  EXPECT_FALSE(session_->Tick(kStart + kSecond + 100 * kMs));
}

TEST_F(GrpcSessionTest, AnEagerClientIsSentAway) {
  options_.max_ping_strikes = 1;
  Open();
  for (int i = 0; i < 3; ++i) client_->Ping();
  EXPECT_TRUE(Receive());
  EXPECT_TRUE(session_->is_condemned());
  Write();
  EXPECT_EQ(client_->goaway_code(), static_cast<uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
}

TEST_F(GrpcSessionTest, OnSentReportsMessagesThatHaveLeft) {
  Open();
  Call(Prefixed("x"), true);
  Exchange();
  call().WantSent(true);
  call().Send(Message("a"));
  EXPECT_EQ(call().unsent_messages(), 1u);
  Exchange();
  EXPECT_EQ(call().unsent_messages(), 0u);
  EXPECT_EQ(events().Take(), (Strings{"x", "sent"}));
}

TEST_F(GrpcSessionTest, AnAbortDropsWhatWaits) {
  Open();
  const int32_t id = Call(Prefixed("x"), true);
  Exchange();
  call().Send(Message("never sent"));
  call().Abort(GrpcStatus::kUnavailable, "given up");
  Exchange();
  EXPECT_EQ(client_->reply(id).status(), "14");
  EXPECT_EQ(client_->reply(id).messages(), Strings{});
  EXPECT_EQ(call().unsent_messages(), 0u);
  client_->Reset(id);
  Exchange();
  EXPECT_EQ(events().Take(), (Strings{"x", "cancelled", "done"}));
}

TEST_F(GrpcSessionTest, EveryCallIsNotifiedThatTheConnectionIsGone) {
  Open();
  Call(Prefixed("a"));
  Call(Prefixed("b"), true);
  Exchange();
  session_->CancelAll();
  EXPECT_EQ(events(0).Take(), (Strings{"a", "half-close", "cancelled", "done"}));
  EXPECT_EQ(events(1).Take(), (Strings{"b", "cancelled", "done"}));
}

}  // namespace
}  // namespace nereid::http2
