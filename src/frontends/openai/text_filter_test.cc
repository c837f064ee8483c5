// SPDX-License-Identifier: Apache-2.0
#include "openai/text_filter.h"

#include <random>

#include <gtest/gtest.h>

namespace nereid::openai {
namespace {

// What a client gets of a text in these pieces, with "|" between what it gets of each, and "." at
// the end if the text was cut.
std::string Seen(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  TextFilter filter(std::move(stops));
  std::string seen;
  for (const std::string& piece : pieces) {
    filter.Push(piece, seen);
    if (filter.stopped()) return seen + ".";
    seen += '|';
  }
  filter.Finish(seen);
  return seen;
}

TEST(TextFilter, PassesTextThrough) {
  EXPECT_EQ(Seen({}, {"ab", "", "c"}), "ab||c|");
  EXPECT_EQ(Seen({"xyz"}, {"ab", "c"}), "ab|c|");
}

TEST(TextFilter, CutsAtTheFirstStopSequence) {
  EXPECT_EQ(Seen({"END"}, {"one END two"}), "one .");
  EXPECT_EQ(Seen({"two", "one"}, {"zero one two"}), "zero .");
  EXPECT_EQ(Seen({"END"}, {"END"}), ".");
}

TEST(TextFilter, FindsStopSequencesAcrossPieces) {
  EXPECT_EQ(Seen({"END"}, {"a E", "N", "D b"}), "a ||.");
  EXPECT_EQ(Seen({"\n\n"}, {"a\n", "\nb"}), "a|.");
  // What only begins like one is passed on as soon as that is certain.
  EXPECT_EQ(Seen({"END"}, {"E", "N", "x"}), "||ENx|");
  EXPECT_EQ(Seen({"END"}, {"E", "N"}), "||EN");
  EXPECT_EQ(Seen({"aab"}, {"aaa", "b"}), "a|.");
}

TEST(TextFilter, TakesTheLongestOfThoseThatEndTogether) {
  EXPECT_EQ(Seen({"b", "ab"}, {"xab"}), "x.");
}

TEST(TextFilter, FindsWhatASearchOfTheWholeTextFinds) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::string> stops(1 + random() % 3);
    for (std::string& stop : stops) {
      for (size_t n = 1 + random() % 4; n > 0; --n) stop += static_cast<char>('a' + random() % 2);
    }
    std::string text;
    std::vector<std::string> pieces(random() % 6);
    for (std::string& piece : pieces) {
      for (size_t n = random() % 5; n > 0; --n) piece += static_cast<char>('a' + random() % 2);
      text += piece;
    }
    // The sequence that is complete first counts; of several, the one that begins first.
    std::string expected = text;
    for (size_t end = 1, begin = std::string::npos; end <= text.size(); ++end) {
      for (const std::string& stop : stops) {
        if (std::string_view(text).substr(0, end).ends_with(stop)) {
          begin = std::min(begin, end - stop.size());
        }
      }
      if (begin == std::string::npos) continue;
      expected = text.substr(0, begin);
      break;
    }
    TextFilter filter(stops);
    std::string seen;
    for (const std::string& piece : pieces) filter.Push(piece, seen);
    if (!filter.stopped()) filter.Finish(seen);
    EXPECT_EQ(seen, expected) << text;
  }
}

TEST(TextFilter, KeepsCharactersWhole) {
  EXPECT_EQ(Seen({}, {"\xC3", "\xA4"}), "|\xC3\xA4|");
  EXPECT_EQ(Seen({}, {"\xF0\x9F", "\x98", "\x80!"}), "||\xF0\x9F\x98\x80!|");
}

TEST(TextFilter, ReplacesWhatIsNoCharacter) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(Seen({}, {"a\xFF", "b"}), "a" + replacement + "|b|");
  EXPECT_EQ(Seen({}, {"\xC3", "x"}), "|" + replacement + "x|");
  EXPECT_EQ(Seen({}, {"\xE2\x82"}), "|" + replacement);
  EXPECT_EQ(CleanText("\xC0\x80"), replacement + replacement);
  EXPECT_EQ(CleanText("\xED\xA0\x80"), replacement + replacement + replacement);
  EXPECT_EQ(CleanText("\xE2\x82\xAC"), "\xE2\x82\xAC");
}

}  // namespace
}  // namespace nereid::openai
