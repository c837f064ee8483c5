// SPDX-License-Identifier: Apache-2.0
#include "base/recent_log.h"

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

void AddMany(RecentLog& log, size_t count, std::string_view text) {
  for (size_t i = 0; i < count; ++i) log.Add(LogLevel::kInfo, "a.cc:1", text, 7);
}

TEST(RecentLog, ReturnsWhatCameAfterAMessage) {
  RecentLog log;
  EXPECT_TRUE(log.After(0).empty());
  log.Add(LogLevel::kError, "a.cc:1", "first", 1000);
  log.Add(LogLevel::kInfo, "b.cc:2", "second", 1001);
  const auto all = log.After(0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].level, LogLevel::kError);
  EXPECT_EQ(all[0].text, "first");
  const auto later = log.After(all[0].id);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].source, "b.cc:2");
  EXPECT_EQ(later[0].unix_ms, 1001);
  EXPECT_TRUE(log.After(later[0].id).empty());
}

TEST(RecentLog, StartsAgainForSomebodyWhoKnewAnotherProcess) {
  RecentLog log;
  AddMany(log, 3, "x");
  EXPECT_EQ(log.After(500).size(), 3u);
}

TEST(RecentLog, KeepsABoundedNumberOfMessages) {
  RecentLog log;
  AddMany(log, RecentLog::kMaxMessages + 5, "x");
  const auto all = log.After(0);
  ASSERT_EQ(all.size(), RecentLog::kMaxMessages);
  EXPECT_EQ(all.front().id, 6u);
  EXPECT_EQ(log.After(all.back().id - 1).size(), 1u);
  EXPECT_EQ(log.After(2).size(), RecentLog::kMaxMessages);
}

TEST(RecentLog, KeepsABoundedNumberOfBytes) {
  RecentLog log;
  AddMany(log, RecentLog::kMaxMessages, std::string(100'000, 'x'));
  size_t bytes = 0;
  for (const RecentMessage& message : log.After(0)) bytes += message.text.size();
  EXPECT_GT(bytes, RecentLog::kMaxBytes / 2);
  EXPECT_LE(bytes, RecentLog::kMaxBytes);
  EXPECT_TRUE(log.After(0).front().text.ends_with("x... (cut)"));
}

TEST(RecentLog, CutsNoCharacterInTwo) {
  RecentLog log;
  std::string text = "x";
  while (text.size() < 2 * RecentLog::kMaxTextBytes) text += "\u00e9";
  log.Add(LogLevel::kInfo, "a.cc:1", text, 7);
  EXPECT_TRUE(log.After(0).front().text.ends_with("\u00e9... (cut)"));
  EXPECT_EQ(log.After(0).front().text.size() % 2, 0u);
}

TEST(RecentLog, KeepsTextThatIsValid) {
  KeepRecentLog();
  NEREID_LOG(kInfo, "a\xff\x1b[2J\nb");
  EXPECT_EQ(RecentLogOfProcess().After(0).back().text, "a\\ufffd\\u001b[2J\nb");
}

TEST(RecentLog, FollowsTheLogOfTheProcessOnceItIsAsked) {
  KeepRecentLog();
  NEREID_LOG(kWarning, "a \"quoted\" warning");
  const auto kept = RecentLogOfProcess().After(0);
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept.back().text, "a \"quoted\" warning");
  EXPECT_EQ(kept.back().level, LogLevel::kWarning);
  EXPECT_TRUE(kept.back().source.starts_with("recent_log_test.cc:"));
}

}  // namespace
}  // namespace nereid::base
