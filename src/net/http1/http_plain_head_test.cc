// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "http1/http_head_parser.h"

namespace nereid::http1 {
namespace {

constexpr size_t kMaxBytes = 65'536;

TEST(PlainHead, ReadsTargetsNamesAndValuesOfEveryLength) {
  for (size_t length = 1; length < 40; ++length) {
    const std::string target = "/" + std::string(length, 'a');
    const std::string name(length, 'N');
    const std::string value(length, 'v');
    const std::string text =
        fmt::format("GET {} HTTP/1.1\r\nHost: h\r\n{}: {}\r\n\r\n", target, name, value);
    HttpHead head;
    ASSERT_EQ(HttpHeadParser::ReadPlain(text, kMaxBytes, head), text.size()) << text;
    EXPECT_EQ(head.target(), target);
    ASSERT_EQ(head.headers().size(), 2u);
    EXPECT_EQ(head.headers()[1].name, name);
    EXPECT_EQ(head.headers()[1].value, value);
    // However little has come, it waits for the rest.
    for (size_t size = 0; size < text.size(); ++size) {
      ASSERT_EQ(HttpHeadParser::ReadPlain(std::string_view(text).substr(0, size), kMaxBytes, head),
                0u)
          << size;
    }
  }
}

TEST(PlainHead, LeavesOtherCharactersToTheParserWhereverTheyAre) {
  const std::string text = "GET /abcdefgh HTTP/1.1\r\nHost: h\r\nabcdefgh: ijklmnop\r\n\r\n";
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = '\x01';
    HttpHead head;
    EXPECT_EQ(HttpHeadParser::ReadPlain(changed, kMaxBytes, head), 0u) << i;
  }
}

TEST(PlainHead, HasRoomForTheMostFieldsThatARequestMayHave) {
  std::string text = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (size_t i = 1; i < HttpHead::kMaxHeaders; ++i) text += fmt::format("x-{}: {}\r\n", i, i);
  const std::string full = text + "\r\n";
  HttpHead head;
  // Twice, as on a connection that is kept: the fields of the first request are gone.
  for (int request = 0; request < 2; ++request) {
    ASSERT_EQ(HttpHeadParser::ReadPlain(full, kMaxBytes, head), full.size());
    EXPECT_EQ(head.headers().size(), HttpHead::kMaxHeaders);
    EXPECT_EQ(head.Header("x-95"), "95");
  }
  text += "one: more\r\n\r\n";
  EXPECT_EQ(HttpHeadParser::ReadPlain(text, kMaxBytes, head), 0u);
  HttpHeadParser parser(head, kMaxBytes);
  EXPECT_EQ(parser.ParseHead(text).status, 431);
}

}  // namespace
}  // namespace nereid::http1
