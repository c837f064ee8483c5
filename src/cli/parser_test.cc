// SPDX-License-Identifier: Apache-2.0
#include "cli/parser.h"

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A command with every kind of argument.
class ParserTest : public testing::Test {
 protected:
  ParserTest() {
    command_.Positional("MODEL", model_, "A model.");
    command_.Positional("SETTING", settings_, "Settings.");
    command_.Option("--url,-u", "URL", url_, "An address.").Variable("NEREID_PARSER_TEST_URL");
    command_.Option("--count", "N", count_, "A number.");
    command_.Option("--header", "TEXT", headers_, "A header.");
    command_.Option("--watch,-w", "SECONDS", watch_, "An interval.").Bare("2");
    command_.Option("--format", "FORMAT", format_, "A format.").OneOf({"json", "table"});
    command_.Flag("--zeros", zeros_, "A flag.");
  }
  ~ParserTest() override { unsetenv("NEREID_PARSER_TEST_URL"); }

  // Returns the error; empty if there is none.
  std::string Error(std::vector<std::string> arguments) {
    return std::string(Parse(command_, std::move(arguments)).status().message());
  }

  Command command_{"try", "Tries"};
  std::string model_;
  std::vector<std::string> settings_;
  std::string url_ = "default";
  int count_ = 1;
  std::vector<std::string> headers_;
  std::optional<Seconds> watch_;
  std::string format_ = "table";
  bool zeros_ = false;
};

TEST_F(ParserTest, OptionsMayStandBeforeAndAfterPositionalArguments) {
  EXPECT_EQ(Error({"--count=3", "m", "--url", "there", "a=b", "--zeros", "c=d"}), "");
  EXPECT_EQ(model_, "m");
  EXPECT_EQ(url_, "there");
  EXPECT_EQ(count_, 3);
  EXPECT_TRUE(zeros_);
  EXPECT_THAT(settings_, ElementsAre("a=b", "c=d"));
}

TEST_F(ParserTest, DefaultsStayWhereNothingIsGiven) {
  EXPECT_EQ(Error({"m"}), "");
  EXPECT_EQ(url_, "default");
  EXPECT_EQ(count_, 1);
  EXPECT_FALSE(watch_.has_value());
  EXPECT_FALSE(zeros_);
  EXPECT_THAT(settings_, IsEmpty());
}

TEST_F(ParserTest, ShortNamesTakeTheirValueWithOrWithoutASpace) {
  EXPECT_EQ(Error({"m", "-u", "a"}), "");
  EXPECT_EQ(url_, "a");
  EXPECT_EQ(Error({"m", "-ub"}), "");
  EXPECT_EQ(url_, "b");
}

TEST_F(ParserTest, TheLastOfTwoValuesCounts) {
  EXPECT_EQ(Error({"m", "--count=3", "--count=4"}), "");
  EXPECT_EQ(count_, 4);
}

TEST_F(ParserTest, RepeatableOptionsCollectTheirValuesAsTheyAre) {
  EXPECT_EQ(Error({"m", "--header", "[a,b]", "--header=c", "--header", ""}), "");
  EXPECT_THAT(headers_, ElementsAre("[a,b]", "c", ""));
}

TEST_F(ParserTest, AnOptionalValueIsTakenOnlyIfItIsOne) {
  EXPECT_EQ(Error({"--watch", "m"}), "");
  EXPECT_EQ(watch_, Seconds(2));
  EXPECT_EQ(model_, "m");
  EXPECT_EQ(Error({"-w", "500ms", "m"}), "");
  EXPECT_EQ(watch_, Seconds(0.5));
  EXPECT_EQ(Error({"m", "--watch=1m"}), "");
  EXPECT_EQ(watch_, Seconds(60));
  EXPECT_THAT(Error({"m", "--watch=often"}), HasSubstr("--watch 'often': expected a time"));
}

TEST_F(ParserTest, NegativeNumbersAreValuesOfOptions) {
  EXPECT_EQ(Error({"m", "--count", "-5"}), "");
  EXPECT_EQ(count_, -5);
}

TEST_F(ParserTest, AVariableOfTheEnvironmentCountsIfTheOptionIsMissing) {
  setenv("NEREID_PARSER_TEST_URL", "from-variable", 1);
  EXPECT_EQ(Error({"m"}), "");
  EXPECT_EQ(url_, "from-variable");
  EXPECT_EQ(Error({"m", "--url=from-option"}), "");
  EXPECT_EQ(url_, "from-option");
}

TEST_F(ParserTest, BracketsOfPositionalArgumentsStay) {
  EXPECT_EQ(Error({"[m]", "[a,b]"}), "");
  EXPECT_EQ(model_, "[m]");
  EXPECT_THAT(settings_, ElementsAre("[a,b]"));
}

TEST_F(ParserTest, HelpWinsOverMistakes) {
  for (const char* flag : {"--help", "-h"}) {
    const auto parsed = Parse(command_, {"--count=x", flag});
    ASSERT_TRUE(parsed.ok());
    EXPECT_TRUE(parsed->wants_help);
  }
}

TEST_F(ParserTest, ErrorsNameTheArgumentAndWhatWasExpected) {
  EXPECT_EQ(Error({}), "MODEL is missing");
  EXPECT_EQ(Error({"m", "--count=many"}),
            "--count 'many': expected an integer from -2147483648 to 2147483647");
  EXPECT_EQ(Error({"m", "--format", "jsn"}),
            "--format 'jsn': expected one of 'json' and 'table'; did you mean 'json'?");
  EXPECT_EQ(Error({"m", "--cuont=1"}), "unknown option '--cuont'; did you mean '--count'?");
  EXPECT_EQ(Error({"m", "--count"}), "option '--count' needs a value");
  EXPECT_EQ(Error({"m", "--url="}), "option '--url' needs a value after '='");
  EXPECT_EQ(Error({"m", "--zeros=yes"}), "option '--zeros' takes no value");
}

TEST_F(ParserTest, OptionsThatExcludeEachOtherAreAnErrorByEitherName) {
  command_.Option("--urls", "URLS", headers_, "Addresses.").Excludes("--url");
  const char* const error = "options '--urls' and '--url' exclude each other; give one of them";
  EXPECT_EQ(Error({"m", "--urls=a", "--url=b"}), error);
  EXPECT_EQ(Error({"-u", "b", "m", "--urls", "a"}), error);
  setenv("NEREID_PARSER_TEST_URL", "from-variable", 1);
  EXPECT_EQ(Error({"m", "--urls=a"}), "");
}

TEST(Parser, OneArgumentTooManyIsAnError) {
  Command command("load", "Loads");
  std::string model;
  command.Positional("MODEL", model, "A model.");
  EXPECT_EQ(Parse(command, {"a", "b"}).status().message(),
            "'b' is one argument too many for 'nereid load'");
}

TEST(Parser, ARequiredOptionMustBeGiven) {
  Command command("tune", "Tunes");
  std::string limit;
  command.Option("--p99", "TIME", limit, "A limit.").Required();
  EXPECT_EQ(Parse(command, {}).status().message(), "option '--p99' is missing");
  EXPECT_TRUE(Parse(command, {"--p99", "20ms"}).ok());
}

}  // namespace
}  // namespace nereid::cli
