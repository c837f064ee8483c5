// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(AppendWrapped, KeepsAllWordsAndTheWidth) {
  constexpr const char* kWords[] = {"a", "to", "größer", "--option", "a-rather-long-word"};
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t i = random() % 30; i > 0; --i) {
      text += kWords[random() % 5];
      text.append(1 + random() % 2, ' ');
    }
    const size_t indent = random() % 9;
    const size_t width = 12 + random() % 60;
    std::string out;
    AppendWrapped(out, text, indent, width);
    ASSERT_EQ(WordsOf(out), WordsOf(text));
    std::istringstream lines(out);
    std::string before;
    for (std::string line; std::getline(lines, line); before = line) {
      ASSERT_EQ(line.find_first_not_of(' '), indent) << out;
      ASSERT_NE(line.back(), ' ') << out;
      ASSERT_TRUE(DisplayWidth(line) <= width || WordsOf(line).size() == 1) << out;
      // No line ends earlier than it must.
      const size_t first = DisplayWidth(WordsOf(line).front());
      ASSERT_TRUE(before.empty() || DisplayWidth(before) + 1 + first > width) << out;
    }
  }
}

TEST(CommandHelp, ShowsWhatIsKnownAboutEachArgument) {
  Command command("send", "Sends a request");
  std::string model;
  std::vector<std::string> inputs;
  std::string url = "localhost:8000";
  std::string format = "table";
  std::optional<Seconds> watch;
  bool zeros = false;
  std::vector<std::string> rest;
  command.Describe("More about it.");
  command.Positional("MODEL", model, "The model.");
  command.Positional("INPUT", inputs, "Inputs.");
  command.Flag("--zeros,-z", zeros, "Zeros.").In("Inputs");
  command.Option("--url,-u", "URL", url, "An address.").Variable("NEREID_URL");
  command.Option("--watch", "TIME", watch, "Again.").Bare("2s");
  command.Option("--format", "FORMAT", format, "A format.").OneOf({"json", "table"});
  command.Option("--header", "TEXT", inputs, "A header.").In("Inputs");
  command.Rest("FLAG", rest);
  command.AddExample("nereid send m", "Sends it.");
  EXPECT_EQ(CommandHelp(command, 60),
            "Sends a request.\n"
            "\n"
            "Usage: nereid send MODEL [INPUT...] [options] [-- FLAG...]\n"
            "\n"
            "More about it.\n"
            "\n"
            "Arguments:\n"
            "  MODEL\n"
            "        The model.\n"
            "  INPUT...\n"
            "        Inputs.\n"
            "\n"
            "Options:\n"
            "  --url, -u URL\n"
            "        An address. Default: localhost:8000. Environment\n"
            "        variable: NEREID_URL.\n"
            "  --watch [TIME]\n"
            "        Again.\n"
            "  --format FORMAT\n"
            "        A format. One of: json, table. Default: table.\n"
            "\n"
            "Inputs:\n"
            "  --zeros, -z\n"
            "        Zeros.\n"
            "  --header TEXT\n"
            "        A header. May be repeated.\n"
            "\n"
            "Examples:\n"
            "  nereid send m\n"
            "        Sends it.\n");
}

TEST(HelpWidth, IsThatOfTheTerminalWithinLimits) {
  const auto width = [](size_t columns) {
    const Output output(stdout, stderr, {.is_terminal = true, .width = columns}, {});
    return HelpWidth(output);
  };
  EXPECT_EQ(width(0), 80U);
  EXPECT_EQ(width(10), 40U);
  EXPECT_EQ(width(72), 72U);
  EXPECT_EQ(width(300), 100U);
}

}  // namespace
}  // namespace nereid::cli
