// SPDX-License-Identifier: Apache-2.0
#include "cli/config_edit.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/parse.h"

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

config::ModelConfig Parsed(const std::string& text) {
  auto config = config::ParseModelConfigText(text, "config.pbtxt");
  EXPECT_TRUE(config.ok()) << config.status().message() << "\n" << text;
  return config.ok() ? *std::move(config) : config::ModelConfig();
}

TEST(SetConfigField, TextsInSeveralPartsAreReplacedAsAWhole) {
  EXPECT_EQ(
      SetConfigField("backend: 'a' \"b\" # c\n 'd\\'' # e\nname: 'n'", "", "backend", "\"x\"", ""),
      "backend: \"x\" # e\nname: 'n'");
}

TEST(SetConfigField, ASignMayStandApartFromItsNumber) {
  EXPECT_EQ(SetConfigField("max_batch_size: - 5;", "", "max_batch_size", "2", ""),
            "max_batch_size: 2;");
  EXPECT_EQ(SetConfigField("max_batch_size:-5", "", "max_batch_size", "2", ""), "max_batch_size:2");
}

TEST(SetConfigField, BracketsInCommentsAreNotThoseOfTheMessage) {
  EXPECT_EQ(SetDelay("dynamic_batching # { see <docs>\n{ }"),
            "dynamic_batching # { see <docs>\n{ max_queue_delay_microseconds: 100 }");
}

TEST(SetConfigParameter, AnEntryWithoutATextLeavesOtherMessagesAlone) {
  for (const char* entry :
       {"parameters { key: 'k' }", "parameters { value { } key: 'k' }",
        "parameters { key: 'k' value { } }", "parameters [ { value <> key: 'k' } ]",
        "parameters { key: 'k', value { string_value: '1' '2' } }"}) {
    const std::string rest = " instance_group { count: 2 } dynamic_batching { }";
    config::ModelConfig expected = Parsed(entry + rest);
    expected.parameters["k"] = "7";
    EXPECT_EQ(Parsed(SetConfigParameter(entry + rest, "k", "7")), expected) << entry;
  }
}

// Writes configurations as people do: any order, brackets, separators, spaces and comments.
class RandomText {
 public:
  explicit RandomText(unsigned seed) : random_(seed) {}

  std::string Make() {
    std::vector<std::string> fields = {
        Field("name", "\"m\""),
        "parameters" + Message({Field("key", "'other'"),
                                "value" + Message({Field("string_value", "\"o\"")})})};
    if (Chance()) fields.push_back(Field("max_batch_size", Chance() ? "16" : "-1"));
    if (Chance()) fields.push_back("dynamic_batching" + Message(Batching()));
    if (Chance()) {
      fields.push_back("parameters" +
                       Message({Field("key", Chance() ? "\"k\"" : "'k'"),
                                "value" + Message({Field("string_value", "'it\\'s {4}'")})}));
    }
    if (Chance()) {
      fields.push_back("instance_group" + Space() + "[" + Braces({Field("kind", "KIND_CPU")}) +
                       (Chance() ? "," + Braces({Field("count", "3")}) : "") + "]");
    } else {
      fields.push_back("instance_group" + Message({}));
    }
    std::ranges::shuffle(fields, random_);
    std::string text = Space();
    for (const std::string& field : fields) text += field + End();
    return text;
  }

 private:
  bool Chance() { return random_() % 2 == 0; }
  std::string Space() {
    constexpr const char* kSpaces[] = {" ",    "\n",      "\t", "  \t ", " # {note} 'é\n",
                                       "\r\n", " # <\n\t"};
    return kSpaces[random_() % std::size(kSpaces)];
  }
  std::string End() { return (Chance() ? "" : Chance() ? "," : ";") + Space(); }
  std::string Field(const std::string& name, const std::string& value) {
    return name + (Chance() ? ":" : ":" + Space()) + value;
  }
  std::string Message(std::vector<std::string> fields) {
    return (Chance() ? "" : ":") + Braces(std::move(fields));
  }
  std::string Braces(std::vector<std::string> fields) {
    std::ranges::shuffle(fields, random_);
    const bool is_angular = random_() % 4 == 0;
    std::string text = Space() + (is_angular ? "<" : "{");
    if (Chance()) text += Space();
    for (const std::string& field : fields) text += field + End();
    return text + (is_angular ? ">" : "}");
  }
  std::vector<std::string> Batching() {
    std::vector<std::string> fields;
    if (Chance()) fields.push_back(Field("preserve_ordering", "true"));
    if (Chance()) fields.push_back(Field("max_queue_delay_microseconds", "5"));
    if (Chance()) fields.push_back(Field("preferred_batch_size", "[ 4, 8 ]"));
    return fields;
  }

  std::mt19937 random_;
};

TEST(SetConfigField, ChangesWhatWasAskedForAndNothingElseHoweverTheTextIsWritten) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const std::string before = RandomText(seed).Make();
    config::ModelConfig expected = Parsed(before);
    if (HasFailure()) return;
    std::string text = SetConfigField(before, "", "max_batch_size", "8", "max_batch_size: 8\n");
    expected.max_batch_size = 8;
    expected.gives_max_batch_size = true;
    text = SetDelay(text);
    if (expected.dynamic_batching() == nullptr) {
      expected.scheduling_choice = config::DynamicBatching();
    }
    std::get<config::DynamicBatching>(expected.scheduling_choice).max_queue_delay_microseconds =
        100;
    text = SetConfigField(text, "instance_group[0]", "count", "2", "instance_group { count: 2 }\n");
    expected.instance_group.front().count = 2;
    text = SetConfigParameter(text, "k", "7");
    expected.parameters["k"] = "7";
    ASSERT_EQ(Parsed(text), expected) << before << "\nbecame\n" << text;
    const auto comments = [](const std::string& all) { return std::ranges::count(all, '#'); };
    ASSERT_EQ(comments(text), comments(before)) << text;
    // A second edit of the same kind changes nothing.
    ASSERT_EQ(SetConfigParameter(SetDelay(text), "k", "7"), text);
  }
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// Applies a patch as `patch` does; "conflict" if it does not fit the text exactly.
std::string Apply(std::string_view before, std::string_view patch) {
  const std::vector<std::string> old = Lines(before);
  const std::vector<std::string> lines = Lines(patch);
  std::string out;
  size_t at = 0;
  for (size_t i = 2; i < lines.size(); ++i) {
    std::string line = lines[i];
    if (line.starts_with("@@ -")) {
      size_t begin = 0;
      const char* const end =
          std::from_chars(line.data() + 4, line.data() + line.size(), begin).ptr;
      const bool is_empty = std::string_view(end).starts_with(",0");
      while (at + (is_empty ? 0 : 1) < begin) out += old.at(at++);
      continue;
    }
    if (line.starts_with('\\')) continue;
    if (i + 1 < lines.size() && lines[i + 1].starts_with('\\')) line.pop_back();
    const std::string text = line.substr(1);
    if (line[0] != '+' && (at >= old.size() || old[at++] != text)) return "conflict";
    if (line[0] != '-') out += text;
  }
  while (at < old.size()) out += old[at++];
  return out;
}

TEST(UnifiedDiff, MakesTheOneTextOfTheOther) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const auto random_text = [&] {
      std::string text;
      for (size_t i = random() % 40; i > 0; --i) text += fmt::format("{}\n", random() % 9);
      return text;
    };
    std::string before = random_text();
    std::string after = round % 2 == 0 ? random_text() : before;
    for (size_t i = random() % 3; i > 0 && !after.empty(); --i) {
      after[random() % after.size()] = 'x';
    }
    if (random() % 4 == 0 && !before.empty()) before.pop_back();
    if (random() % 4 == 0 && !after.empty()) after.pop_back();
    const std::string patch = UnifiedDiff(before, after, "m/config.pbtxt");
    ASSERT_EQ(patch.empty(), before == after);
    ASSERT_EQ(Apply(before, patch), after) << "from\n" << before << "with\n" << patch;
  }
}

}  // namespace
}  // namespace nereid::cli
