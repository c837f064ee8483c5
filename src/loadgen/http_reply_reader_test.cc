// SPDX-License-Identifier: Apache-2.0
#include "loadgen/http_reply_reader.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>
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

constexpr std::string_view kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kEvents =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n";

std::string Chunk(std::string_view data) {
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

// Feeds the reply in random pieces. Returns the events, or nothing if the reader refuses.
std::optional<uint64_t> FeedInPieces(HttpReplyReader& reader, std::string_view reply,
                                     std::mt19937& random) {
  uint64_t events = 0;
  while (!reply.empty()) {
    const size_t size = std::min<size_t>(1 + random() % 40, reply.size());
    const auto fed = reader.Feed(reply.substr(0, size));
    if (!fed.ok()) return std::nullopt;
    events += *fed;
    reply.remove_prefix(size);
  }
  return events;
}

bool IsRefused(std::string_view reply) {
  HttpReplyReader reader;
  reader.Reset(false);
  return !reader.Feed(reply).ok();
}

TEST(HttpReplyReader, RefusesWhatIsNoReply) {
  for (const char* text :
       {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "\r\n\r\n",
        "HTTP/2 200\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"}) {
    EXPECT_TRUE(IsRefused(text)) << text;
  }
}

TEST(HttpReplyReader, RefusesLengthsThatAreNoNumbers) {
  for (const char* length : {"-1", "+1", "0x5", "five", "5 5", "5,5", "99999999999999999999"}) {
    EXPECT_TRUE(IsRefused(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", length)))
        << length;
  }
}

TEST(HttpReplyReader, RefusesChunksWithoutASize) {
  for (const char* size : {"", "-3", "x", "0x3", "fffffffffffffffff"}) {
    HttpReplyReader reader;
    reader.Reset(false);
    const bool is_refused =
        !reader.Feed(fmt::format("{}{}\r\nabcd\r\n0\r\n\r\n", kChunked, size)).ok();
    EXPECT_TRUE(is_refused) << size;
    EXPECT_FALSE(reader.is_complete()) << size;
  }
}

TEST(HttpReplyReader, RefusesAChunkThatIsLongerThanItsSize) {
  EXPECT_TRUE(IsRefused(std::string(kChunked) + "2\r\nabc\r\n0\r\n\r\n"));
  EXPECT_TRUE(IsRefused(std::string(kChunked) + "2\r\nab\rx0\r\n\r\n"));
}

TEST(HttpReplyReader, RefusesHeadsAndLinesThatDoNotEnd) {
  const std::string endless(20'000, 'a');
  EXPECT_TRUE(IsRefused("HTTP/1.1 200 OK\r\nA: " + endless));
  EXPECT_TRUE(IsRefused(std::string(kChunked) + "3;" + endless));
  EXPECT_TRUE(IsRefused(std::string(kChunked) + "0\r\nA: " + endless));
}

TEST(HttpReplyReader, TakesExtensionsOfChunksAndLinesBehindTheLast) {
  ForAllPieces(std::string(kChunked) + "3;a=b\r\nabc\r\n0\r\nX-Sum: 7\r\nY: z\r\n\r\n",
               [](const auto& reader) {
                 EXPECT_TRUE(reader.is_complete());
                 EXPECT_EQ(reader.body(), "abc");
               });
}

TEST(HttpReplyReader, WaitsForTheReplyBehindOneThatSaysToContinue) {
  ForAllPieces(
      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
      [](const auto& reader) {
        EXPECT_TRUE(reader.is_complete());
        EXPECT_EQ(reader.status(), 200);
        EXPECT_EQ(reader.body(), "ok");
      });
}

TEST(HttpReplyReader, ExpectsNoBodyOfStatusesThatHaveNone) {
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    ForAllPieces(fmt::format("HTTP/1.1 {}\r\nServer: x\r\n\r\n", status), [](const auto& reader) {
      EXPECT_TRUE(reader.is_complete());
      EXPECT_EQ(reader.body_size(), 0U);
    });
  }
}

TEST(HttpReplyReader, BelievesChunksMoreThanALength) {
  HttpReplyReader reader;
  reader.Reset(true);
  ASSERT_TRUE(reader
                  .Feed("HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: Chunked\r\n"
                        "\r\n1\r\na\r\n0\r\n\r\n")
                  .ok());
  EXPECT_TRUE(reader.is_complete());
  EXPECT_EQ(reader.body(), "a");
}

TEST(HttpReplyReader, KnowsWhichConnectionsTheServerKeeps) {
  struct Case {
    const char* head;
    bool closes;
  };
  for (const auto& [head, closes] :
       std::initializer_list<Case>{{"HTTP/1.1 200 OK\r\n", false},
                                   {"HTTP/1.1 200 OK\r\nConnection: Close\r\n", true},
                                   {"HTTP/1.1 200 OK\r\nConnection: closed-circuit\r\n", false},
                                   {"HTTP/1.1 200 OK\r\nX-Connection: close\r\n", false},
                                   {"HTTP/1.0 200 OK\r\n", true},
                                   {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", false}}) {
    HttpReplyReader reader;
    reader.Reset(false);
    ASSERT_TRUE(reader.Feed(fmt::format("{}Content-Length: 0\r\n\r\n", head)).ok());
    EXPECT_EQ(reader.closes(), closes) << head;
  }
}

TEST(HttpReplyReader, KeepsOnlyTheBeginningOfALongRefusal) {
  HttpReplyReader reader;
  reader.Reset(/*keep_body=*/false);
  const std::string body(1'000'000, 'x');
  const std::string reply =
      fmt::format("HTTP/1.1 500 No\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  ASSERT_TRUE(reader.Feed(reply).ok());
  EXPECT_TRUE(reader.is_complete());
  EXPECT_EQ(reader.body_size(), body.size());
  EXPECT_EQ(reader.body(), body.substr(0, 4096));
}

TEST(HttpReplyReader, FindsTheSameBodyWhateverTheChunksAndPieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string body;
    std::string reply(kChunked);
    for (uint32_t chunks = random() % 8; chunks > 0; --chunks) {
      std::string chunk(1 + random() % 300, '\0');
      for (char& c : chunk) c = "\r\n0:da;"[random() % 7];
      body += chunk;
      reply += Chunk(chunk);
    }
    reply += "0\r\n\r\n";
    HttpReplyReader reader;
    reader.Reset(true);
    ASSERT_TRUE(FeedInPieces(reader, reply, random).has_value());
    ASSERT_TRUE(reader.is_complete());
    ASSERT_EQ(reader.body(), body);
  }
}

TEST(HttpReplyReader, CountsEventsWhateverTheChunksAndPieces) {
  std::mt19937 random(8);
  for (int round = 0; round < 500; ++round) {
    std::string body;
    uint64_t events = 0;
    for (uint32_t parts = random() % 30; parts > 0; --parts) {
      switch (random() % 4) {
        case 0:
          body += ": only a comment\n\n";
          break;
        case 1:  // data that look like the beginning of an event
          body += "data: {\"text\":\"dadata:data: data:\"}\n\n";
          ++events;
          break;
        default:
          body += "data:x\r\n\r\n";
          ++events;
      }
    }
    std::string reply(kEvents);
    for (std::string_view rest = body; !rest.empty();) {
      const size_t size = std::min<size_t>(1 + random() % 20, rest.size());
      reply += Chunk(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    HttpReplyReader reader;
    reader.Reset(false);
    ASSERT_EQ(FeedInPieces(reader, reply + "0\r\n\r\n", random), events) << body;
  }
}

TEST(HttpReplyReader, NeverCompletesWhatWasCutOff) {
  const std::string reply =
      std::string(kEvents) + Chunk("data: a\n\n") + Chunk("data: b\n\n") + "0\r\nA: b\r\n\r\n";
  for (size_t size = 0; size < reply.size(); ++size) {
    HttpReplyReader reader;
    reader.Reset(false);
    ASSERT_TRUE(reader.Feed(reply.substr(0, size)).ok());
    EXPECT_FALSE(reader.is_complete()) << size;
    EXPECT_EQ(reader.has_begun(), size > 0);
  }
}

TEST(HttpReplyReader, SurvivesAnyBytesAndIsUsableAgain) {
  std::mt19937 random(9);
  const std::string valid = std::string(kChunked) + Chunk("hello") + "0\r\n\r\n";
  HttpReplyReader reader;
  for (int round = 0; round < 5000; ++round) {
    std::string reply = valid;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      reply[random() % reply.size()] = static_cast<char>(random());
    }
    reader.Reset(true);
    if (FeedInPieces(reader, reply, random) && reader.is_complete()) {
      EXPECT_LE(reader.body_size(), reply.size());
    }
    reader.Reset(true);
    ASSERT_TRUE(reader.Feed(valid).ok());
    ASSERT_EQ(reader.body(), "hello");
  }
}

}  // namespace
}  // namespace nereid::loadgen
