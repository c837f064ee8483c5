// SPDX-License-Identifier: Apache-2.0
#include "loadgen/http_reply_reader.h"

#include <functional>

#include <gtest/gtest.h>

namespace nereid::loadgen {
namespace {

// Feeds the reply in pieces of every length and returns the reader after the last one.
void ForAllPieces(std::string_view reply,
                  const std::function<void(const HttpReplyReader&)>& check) {
  for (size_t step = 1; step <= reply.size(); ++step) {
    HttpReplyReader reader;
    reader.Reset(/*keep_body=*/true);
    for (size_t at = 0; at < reply.size(); at += step) {
      const auto fed = reader.Feed(reply.substr(at, step));
      ASSERT_TRUE(fed.ok()) << fed.status().message();
    }
    check(reader);
  }
}

TEST(HttpReplyReader, ReadsABodyOfKnownLengthInAnyPieces) {
  ForAllPieces("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", [](const auto& reader) {
    EXPECT_TRUE(reader.is_complete());
    EXPECT_EQ(reader.status(), 200);
    EXPECT_EQ(reader.body(), "hello");
    EXPECT_FALSE(reader.closes());
  });
}

TEST(HttpReplyReader, ReadsChunksInAnyPieces) {
  ForAllPieces(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
      [](const auto& reader) {
        EXPECT_TRUE(reader.is_complete());
        EXPECT_EQ(reader.body(), "abcde");
      });
}

TEST(HttpReplyReader, KeepsTheBodyOfARefusal) {
  HttpReplyReader reader;
  reader.Reset(/*keep_body=*/false);
  ASSERT_TRUE(
      reader.Feed("HTTP/1.1 400 Bad\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno").ok());
  EXPECT_EQ(reader.status(), 400);
  EXPECT_EQ(reader.body(), "no");
  EXPECT_TRUE(reader.closes());
}

TEST(HttpReplyReader, RefusesWhatIsNoReply) {
  for (const char* text : {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"}) {
    HttpReplyReader reader;
    reader.Reset(false);
    EXPECT_FALSE(reader.Feed(text).ok()) << text;
  }
}

}  // namespace
}  // namespace nereid::loadgen
