// SPDX-License-Identifier: Apache-2.0
#include "http2/message_delivery.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/object_pool.h"
#include "http2/testing/client.h"
#include "http2/testing/host.h"

namespace nereid::http2 {
namespace {

using Strings = std::vector<std::string>;

MessageAssembler::Message Message(std::string_view text, bool is_compressed = false) {
  base::BufferRef buffer = base::AcquireBuffer(text.size() + 1);
  std::memcpy(buffer.data(), text.data(), text.size());
  const std::string_view bytes(reinterpret_cast<const char*>(buffer.data()), text.size());
  return {std::move(buffer), bytes, is_compressed};
}

std::string Packed(const std::string& text) {
  const iovec part{const_cast<char*>(text.data()), text.size()};
  auto packed = net::Compress(net::Compression::kGzip, {&part, 1});
  return std::string(packed->data);
}

class MessageDeliveryTest : public testing::Test {
 protected:
  struct Call {
    GrpcStream* stream;
    TestEvents events;
  };

  void SetUp() override {
    for (Call* call : {&one_, &two_}) {
      call->stream = base::ObjectPool<GrpcStream>::Take();
      call->stream->Begin(host_, call == &one_ ? 1 : 3, 0);
      call->stream->events = &call->events;
    }
  }
  void TearDown() override {
    host_.Work();
    TakeBack();
    for (Call* call : {&one_, &two_}) {
      Close(*call);
      call->stream->Unreference();
    }
    EXPECT_EQ(host_.holds, 0);
  }

  void Deliver(Call& call, MessageAssembler::Message message) {
    EXPECT_FALSE(delivery_.Deliver(*call.stream, std::move(message)).has_value());
  }
  void EndInput(Call& call) {
    call.stream->input.is_half_closed = true;
    delivery_.EndInput(*call.stream);
  }
  void Close(Call& call) {
    call.stream->is_closed = true;
    delivery_.Close(*call.stream);
    call.stream->ReportDone();
  }
  // Takes back what the workers have done; returns the last error.
  std::optional<GrpcError> TakeBack() {
    std::optional<GrpcError> error;
    for (const GrpcMessagePtr& message : host_.Take()) {
      EXPECT_EQ(message->order.kinds, GrpcOrder::kReturn);
      if (auto found = delivery_.TakeBack(*message->order.stream)) error = found;
      message->order.stream->Unreference();
    }
    return error;
  }

  GrpcServerOptions options_;
  ReceiveRoom room_{1 << 20};
  TestHost host_;
  MessageDelivery delivery_{options_, room_};
  Call one_, two_;
  const std::string large_ = std::string(100'000, 'x');
};

TEST_F(MessageDeliveryTest, MessagesAreHandedOverAtOnce) {
  Deliver(one_, Message("a"));
  Deliver(one_, Message(large_));  // large, but not heavy
  Deliver(two_, Message("b"));
  EndInput(one_);
  EXPECT_EQ(one_.events.Take(), (Strings{"a", "100000 bytes", "half-close"}));
  EXPECT_EQ(two_.events.Take(), Strings{"b"});
  EXPECT_FALSE(delivery_.has_waiting());
  EXPECT_EQ(one_.stream->held_bytes, 100'001u);
  delivery_.Credit(*one_.stream, 100'000);
  EXPECT_EQ(one_.stream->held_bytes, 1u);
}

TEST_F(MessageDeliveryTest, ASlowReaderGetsItsMessagesWhenItHasRead) {
  options_.max_stream_backlog_bytes = 1000;
  one_.stream->unsent().Add(1001);
  Deliver(one_, Message("a"));
  Deliver(one_, Message("b"));
  EndInput(one_);
  EXPECT_EQ(one_.events.Take(), Strings{});
  EXPECT_TRUE(delivery_.has_waiting());
  one_.stream->unsent().Remove(1001);
  EXPECT_FALSE(delivery_.Continue(*one_.stream).has_value());
  EXPECT_EQ(one_.events.Take(), (Strings{"a", "b", "half-close"}));
  EXPECT_FALSE(delivery_.has_waiting());
}

TEST_F(MessageDeliveryTest, HeavyMessagesAndWhatFollowsGoToAWorker) {
  one_.events.is_heavy = true;
  Deliver(one_, Message("a"));
  Deliver(one_, Message(large_));
  Deliver(one_, Message("b"));
  EndInput(one_);
  host_.Work();
  EXPECT_EQ(one_.events.Take(), (Strings{"a", "100000 bytes"}));
  EXPECT_FALSE(TakeBack().has_value());
  EXPECT_EQ(one_.stream->input.place, CallInput::Place::kAtWorker);  // reports the end
  host_.Work();
  EXPECT_EQ(one_.events.Take(), (Strings{"b", "half-close"}));
}

TEST_F(MessageDeliveryTest, OneMessageOfAConnectionIsWithAWorkerAtATime) {
  one_.events.is_heavy = two_.events.is_heavy = true;
  Deliver(one_, Message(large_));
  Deliver(two_, Message(large_));
  host_.Work();
  EXPECT_EQ(one_.events.Take(), Strings{"100000 bytes"});
  EXPECT_EQ(two_.events.Take(), Strings{});
  TakeBack();
  host_.Work();
  EXPECT_EQ(two_.events.Take(), Strings{"100000 bytes"});
}

TEST_F(MessageDeliveryTest, TheLineWaitsWhileMessagesInServiceExceedTheBudget) {
  one_.events.is_heavy = true;
  Deliver(two_, Message(std::string((1 << 20) + 1, 'x')));
  Deliver(one_, Message(large_));
  host_.Work();
  EXPECT_EQ(one_.events.Take(), Strings{});
  delivery_.Credit(*two_.stream, 1);
  host_.Work();
  EXPECT_EQ(one_.events.Take(), Strings{"100000 bytes"});
}

TEST_F(MessageDeliveryTest, SmallCompressedMessagesAreInflatedHere) {
  Deliver(one_, Message(Packed("plain"), true));
  EXPECT_EQ(one_.events.Take(), Strings{"plain"});
  EXPECT_EQ(one_.stream->held_bytes, 5u);
}

TEST_F(MessageDeliveryTest, NoMoreIsInflatedHereThanATurnHasTimeFor) {
  const std::string packed = Packed(std::string(900'000, '\0'));
  ASSERT_LE(packed.size(), 1024u);
  for (int i = 0; i < 3; ++i) Deliver(one_, Message(packed, true));
  EXPECT_EQ(one_.events.Take(), (Strings{"900000 bytes", "900000 bytes"}));
  delivery_.Credit(*one_.stream, 1'800'000);
  host_.Work();
  TakeBack();
  EXPECT_EQ(one_.events.Take(), Strings{"900000 bytes"});
  delivery_.Credit(*one_.stream, 900'000);
  delivery_.BeginTurn();
  Deliver(one_, Message(packed, true));
  EXPECT_EQ(one_.events.Take(), Strings{"900000 bytes"});
}

TEST_F(MessageDeliveryTest, LargeCompressedMessagesAreInflatedByAWorkerInTheirOrder) {
  const std::string text = Noise(5000, 1);
  Deliver(one_, Message(Packed(text), true));
  Deliver(one_, Message("behind"));
  EXPECT_EQ(one_.events.Take(), Strings{});
  host_.Work();
  EXPECT_EQ(one_.events.Take(), Strings{});  // delivered in the reactor's next turn
  EXPECT_FALSE(TakeBack().has_value());
  EXPECT_EQ(one_.events.Take(), (Strings{"5000 bytes", "behind"}));
  EXPECT_EQ(one_.stream->held_bytes, 5006u);
}

TEST_F(MessageDeliveryTest, WhatCannotBeInflatedIsAnError) {
  const std::optional<GrpcError> small =
      delivery_.Deliver(*one_.stream, Message("not packed", true));
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->status, GrpcStatus::kInternal);
  Deliver(two_, Message(Noise(5000, 1), true));
  host_.Work();
  const std::optional<GrpcError> large = TakeBack();
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(large->status, GrpcStatus::kInternal);
  EXPECT_EQ(two_.events.Take(), Strings{});
}

TEST_F(MessageDeliveryTest, AnEndIsReportedWhenTheWorkerIsOut) {
  one_.events.is_heavy = true;
  Deliver(one_, Message(large_));
  host_.Work();
  EXPECT_EQ(one_.events.Take(), Strings{"100000 bytes"});
  one_.stream->ReportCancel();
  Close(one_);
  EXPECT_TRUE(one_.stream->is_cancelled());
  EXPECT_EQ(one_.events.Take(), Strings{});
  TakeBack();
  EXPECT_EQ(one_.events.Take(), (Strings{"cancelled", "done"}));
}

TEST_F(MessageDeliveryTest, AClosedStreamLeavesTheLine) {
  one_.events.is_heavy = two_.events.is_heavy = true;
  Deliver(one_, Message(large_));
  Deliver(two_, Message(large_));
  Close(two_);
  EXPECT_EQ(two_.events.Take(), Strings{"done"});
  EXPECT_FALSE(delivery_.has_waiting());
  host_.Work();
  TakeBack();
  host_.Work();
  EXPECT_EQ(two_.events.Take(), Strings{});
}

}  // namespace
}  // namespace nereid::http2
