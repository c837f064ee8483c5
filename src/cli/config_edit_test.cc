// SPDX-License-Identifier: Apache-2.0
#include "cli/config_edit.h"

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

constexpr std::string_view kDelay = "max_queue_delay_microseconds";
constexpr std::string_view kBlock = "dynamic_batching {\n  max_queue_delay_microseconds: 100\n}\n";

std::string SetDelay(std::string text) {
  return SetConfigField(std::move(text), "dynamic_batching", kDelay, "100", kBlock);
}

TEST(SetConfigField, ReplacesAValueAndKeepsComments) {
  EXPECT_EQ(SetConfigField("# mine\nmax_batch_size: 4  # four\n", "", "max_batch_size", "8",
                           "max_batch_size: 8\n"),
            "# mine\nmax_batch_size: 8  # four\n");
  EXPECT_EQ(SetDelay("dynamic_batching {\n\tmax_queue_delay_microseconds:5\n}\n"),
            "dynamic_batching {\n\tmax_queue_delay_microseconds:100\n}\n");
}

TEST(SetConfigField, AddsAFieldToAMessage) {
  EXPECT_EQ(SetDelay("dynamic_batching { preserve_ordering: true }"),
            "dynamic_batching { max_queue_delay_microseconds: 100 preserve_ordering: true }");
  EXPECT_EQ(SetDelay("dynamic_batching {}"),
            "dynamic_batching { max_queue_delay_microseconds: 100 }");
  EXPECT_EQ(SetDelay("dynamic_batching { }"),
            "dynamic_batching { max_queue_delay_microseconds: 100 }");
  EXPECT_EQ(SetConfigField("instance_group [\n  { kind: KIND_CPU }\n]\n", "instance_group[0]",
                           "count", "2", ""),
            "instance_group [\n  { count: 2 kind: KIND_CPU }\n]\n");
}

TEST(SetConfigField, AppendsAMessageThatIsMissing) {
  EXPECT_EQ(SetDelay("name: \"m\""), "name: \"m\"\n" + std::string(kBlock));
  EXPECT_EQ(SetDelay(""), kBlock);
}

TEST(SetConfigParameter, FindsTheEntryInEveryForm) {
  EXPECT_EQ(SetConfigParameter("parameters { key: \"k\" value { string_value: \"4\" } }", "k", "2"),
            "parameters { key: \"k\" value { string_value: \"2\" } }");
  EXPECT_EQ(SetConfigParameter("parameters [ { key: 'a' value { string_value: 'x' } },\n"
                               "{ key: 'k' value: { string_value: '4' } } ]",
                               "k", "2"),
            "parameters [ { key: 'a' value { string_value: 'x' } },\n"
            "{ key: 'k' value: { string_value: \"2\" } } ]");
  EXPECT_EQ(SetConfigParameter("", "k", "2"),
            "parameters {\n  key: \"k\"\n  value { string_value: \"2\" }\n}\n");
}

TEST(UnifiedDiff, ShowsWhatPatchUnderstands) {
  EXPECT_EQ(UnifiedDiff("a\nb\n", "a\nb\n", "m/config.pbtxt"), "");
  EXPECT_EQ(UnifiedDiff("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nfive\n6\n7\n", "m/c"),
            "--- a/m/c\n+++ b/m/c\n@@ -2,5 +2,6 @@\n 2\n 3\n 4\n-5\n+five\n 6\n+7\n");
  EXPECT_EQ(UnifiedDiff("", "a\n", "m/c"), "--- /dev/null\n+++ b/m/c\n@@ -0,0 +1,1 @@\n+a\n");
}

TEST(UnifiedDiff, KeepsDistantChangesApart) {
  std::string before;
  for (int i = 0; i < 20; ++i) before += std::to_string(i) + "\n";
  std::string after = before;
  after.replace(after.find("1\n"), 1, "one");
  after.replace(after.find("18\n"), 2, "eighteen");
  EXPECT_EQ(UnifiedDiff(before, after, "c"),
            "--- a/c\n+++ b/c\n@@ -1,5 +1,5 @@\n 0\n-1\n+one\n 2\n 3\n 4\n"
            "@@ -16,5 +16,5 @@\n 15\n 16\n 17\n-18\n+eighteen\n 19\n");
}

TEST(UnifiedDiff, SaysThatALastLineHasNoEnd) {
  EXPECT_EQ(UnifiedDiff("a", "a\nb\n", "c"),
            "--- a/c\n+++ b/c\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n");
}

}  // namespace
}  // namespace nereid::cli
