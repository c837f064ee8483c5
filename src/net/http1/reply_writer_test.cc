// SPDX-License-Identifier: Apache-2.0
#include "http1/reply_writer.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

struct Owner final : HttpReplyOwner {
  void ReplySent() override { ++told; }
  int told = 0;
};

std::string Text(std::span<const iovec> pieces) {
  std::string text;
  for (const iovec& piece : pieces) {
    text.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  }
  return text;
}

// Returns what a socket receives that takes `most` bytes at a time.
std::string SendRest(ReplyWriter& writer, size_t most) {
  std::string taken;
  std::array<iovec, ReplyWriter::kMaxPieces> pieces;
  while (const size_t count = writer.FillPieces(pieces)) {
    const std::string text = Text(std::span(pieces).first(count)).substr(0, most);
    taken += text;
    writer.SentRest(text.size());
  }
  return taken;
}

std::string Head(const HttpReply& reply, const ReplyForm& form) {
  return std::string(ReplyHead(reply, form, uint64_t{5}).text());
}

TEST(ReplyHead, IsWhatClientsOfTritonSee) {
  EXPECT_EQ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n",
            Head({.content_type = "text/plain"}, {}));
  EXPECT_EQ(
      "HTTP/1.1 404 Not Found\r\nA: b\r\nC: d\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
      Head({.status = 404, .headers = "A: b\r\n"}, {.lines = "C: d\r\n", .closes = true}));
  EXPECT_EQ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n",
            Head({}, {.version = 10}));
}

TEST(ReplyHead, OfAStreamHasNoLength) {
  EXPECT_EQ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            ReplyHead({}, {}, StreamFraming::kChunks).text());
  EXPECT_EQ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
            ReplyHead({}, {.closes = true, .version = 10}, StreamFraming::kUntilClose).text());
}

TEST(ReplyHead, MayBeOfAnyLength) {
  for (const size_t size : {900u, 980u, 990u, 1024u, 5000u}) {
    const std::string line = "X: " + std::string(size, 'x') + "\r\n";
    EXPECT_EQ("HTTP/1.1 200 OK\r\n" + line + "Content-Length: 5\r\n\r\n",
              Head({.headers = line}, {}));
  }
}

// A reply of several parts, each in its own memory.
struct ReplyWriterTest : testing::Test {
  explicit ReplyWriterTest(size_t count = 3) {
    for (size_t i = 0; i < count; ++i) {
      const std::string piece = "part " + std::to_string(i) + ";";
      base::BufferRef buffer = base::AcquireBuffer(piece.size());
      std::copy(piece.begin(), piece.end(), reinterpret_cast<char*>(buffer.data()));
      parts.push_back({buffer.data(), piece.size(), buffer});
      body += piece;
    }
    body = "text;" + body;
  }
  HttpReply MakeReply() { return {.text = "text;", .parts = parts, .owner = &owner}; }
  std::string expected() const {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  std::vector<HttpBodyPart> parts;
  std::string body;
  Owner owner;
  ReplyWriter writer;
};

TEST_F(ReplyWriterTest, AReplyIsOneWrite) {
  const HttpReply reply = MakeReply();
  const ReplyMessage message(reply, {});
  EXPECT_EQ(expected(), Text(message.pieces()));
  EXPECT_EQ(expected().size(), message.size());
  EXPECT_TRUE(writer.Sent(message, static_cast<ssize_t>(message.size())));
  EXPECT_EQ(1, owner.told);
  EXPECT_FALSE(writer.has_rest());
}

TEST_F(ReplyWriterTest, TheReplyToAHeadSaysHowLongItWouldBe) {
  const HttpReply reply = MakeReply();
  const ReplyMessage message(reply, {.omits_body = true});
  EXPECT_EQ(expected().substr(0, expected().size() - body.size()), Text(message.pieces()));
  EXPECT_EQ(expected().size() - body.size(), message.size());
  EXPECT_FALSE(writer.Sent(message, 3));
  EXPECT_EQ("P/1.1 200 OK", SendRest(writer, 5).substr(0, 12));
}

TEST_F(ReplyWriterTest, WhatTheSocketDoesNotTakeFollowsWhereverItStopped) {
  for (size_t cut = 0; cut < expected().size(); ++cut) {
    for (const size_t most : {size_t{1}, size_t{7}, SIZE_MAX}) {
      owner.told = 0;
      std::vector<HttpBodyPart> copies = parts;
      HttpReply reply = MakeReply();
      reply.parts = copies;
      const ReplyMessage message(reply, {});
      ASSERT_FALSE(writer.Sent(message, static_cast<ssize_t>(cut)));
      ASSERT_TRUE(writer.has_rest());
      ASSERT_EQ(expected().substr(cut), SendRest(writer, most)) << cut;
      EXPECT_EQ(0, owner.told);
      writer.DropRest();
      EXPECT_EQ(1, owner.told);
      EXPECT_FALSE(writer.has_rest());
    }
  }
}

TEST_F(ReplyWriterTest, APartIsLetGoWhenItIsSent) {
  base::BufferRef first = parts[0].owner;
  const HttpReply reply = MakeReply();
  {
    const ReplyMessage message(reply, {});
    ASSERT_FALSE(writer.Sent(message, 0));
  }
  parts.clear();
  EXPECT_FALSE(first.unique());
  writer.SentRest(expected().find("part 0;") + 6);
  EXPECT_FALSE(first.unique());
  writer.SentRest(1);
  EXPECT_TRUE(first.unique());
}

TEST_F(ReplyWriterTest, ABrokenSocketNeedsNothingMore) {
  const HttpReply reply = MakeReply();
  EXPECT_TRUE(writer.Sent(ReplyMessage(reply, {}), -1));
  EXPECT_EQ(1, owner.told);
  EXPECT_FALSE(writer.Sent(ReplyMessage(reply, {}), 1));
  writer.DropRest();
  writer.DropRest();
  EXPECT_EQ(2, owner.told);
}

TEST_F(ReplyWriterTest, ASmallReplyWaitsInMemoryOfTheConnection) {
  std::vector<std::byte> room(expected().size());
  const HttpReply reply = MakeReply();
  {
    const ReplyMessage message(reply, {});
    EXPECT_TRUE(message.is_small());
    EXPECT_FALSE(writer.Defer(message, std::span(room).first(room.size() - 1)));
    EXPECT_FALSE(writer.is_deferred());
    EXPECT_TRUE(writer.Defer(message, room));
  }
  EXPECT_TRUE(writer.is_deferred());
  EXPECT_EQ(expected(), writer.deferred());
  EXPECT_TRUE(writer.SentDeferred(static_cast<ssize_t>(room.size())));
  EXPECT_FALSE(writer.is_deferred());
  EXPECT_EQ(1, owner.told);
}

TEST_F(ReplyWriterTest, TheRestOfADeferredReplyFollows) {
  std::vector<std::byte> room(expected().size());
  const HttpReply reply = MakeReply();
  ASSERT_TRUE(writer.Defer(ReplyMessage(reply, {}), room));
  EXPECT_FALSE(writer.SentDeferred(10));
  std::fill(room.begin(), room.end(), std::byte{0});  // the connection reads into it again
  EXPECT_EQ(expected().substr(10), SendRest(writer, SIZE_MAX));
  EXPECT_EQ(0, owner.told);
  writer.DropRest();
  EXPECT_EQ(1, owner.told);
}

TEST_F(ReplyWriterTest, ALargeReplyWaitsForNoOther) {
  const std::string large(4 << 10, 'x');
  const HttpReply reply{.text = large};
  EXPECT_FALSE(ReplyMessage(reply, {}).is_small());
  EXPECT_TRUE(ReplyMessage(reply, {.omits_body = true}).is_small());
}

struct ReplyOfManyPartsTest : ReplyWriterTest {
  ReplyOfManyPartsTest() : ReplyWriterTest(200) {}
};

TEST_F(ReplyOfManyPartsTest, GoesOutInSeveralWrites) {
  const HttpReply reply = MakeReply();
  const ReplyMessage message(reply, {});
  EXPECT_FALSE(message.is_small());
  const std::string first = Text(message.pieces());
  EXPECT_LT(first.size(), message.size());
  ASSERT_FALSE(writer.Sent(message, static_cast<ssize_t>(first.size())));
  EXPECT_EQ(expected(), first + SendRest(writer, SIZE_MAX));
}

}  // namespace
}  // namespace nereid::http1
