// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include "cli/progress.h"

namespace nereid::cli {
namespace {

// An output whose streams are in memory.
class OutputTest : public testing::Test {
 protected:
  ~OutputTest() override {
    std::fclose(out_);
    std::fclose(err_);
    std::free(out_text_);
    std::free(err_text_);
  }

  std::string Out() { return std::fflush(out_), std::string(out_text_, out_size_); }
  std::string Err() { return std::fflush(err_), std::string(err_text_, err_size_); }

  char* out_text_ = nullptr;
  size_t out_size_ = 0;
  char* err_text_ = nullptr;
  size_t err_size_ = 0;
  std::FILE* out_ = open_memstream(&out_text_, &out_size_);
  std::FILE* err_ = open_memstream(&err_text_, &err_size_);
};

constexpr StreamTraits kTerminal{
    .is_terminal = true, .has_colours = true, .width = 20, .height = 4};

TEST_F(OutputTest, JsonIsOnOneLineInAPipeAndIndentedOnATerminal) {
  rapidjson::Document document;
  document.Parse(R"({"a":[1,{"b":"x,\"{"}],"c":{},"d":[]})");
  Output(out_, err_, {}, {}).PrintJson(document);
  EXPECT_EQ(Out(), "{\"a\":[1,{\"b\":\"x,\\\"{\"}],\"c\":{},\"d\":[]}\n");
  Output(out_, err_, kTerminal, {}).PrintJson(document);
  EXPECT_EQ(Out().substr(Out().find('\n') + 1),
            "{\n"
            "  \"a\": [\n"
            "    1,\n"
            "    {\n"
            "      \"b\": \"x,\\\"{\"\n"
            "    }\n"
            "  ],\n"
            "  \"c\": {},\n"
            "  \"d\": []\n"
            "}\n");
}

TEST_F(OutputTest, AnErrorIsAMessageAndWithJsonADocument) {
  Output output(out_, err_, {}, {});
  EXPECT_EQ(output.Fail(ExitCode::kFailure, "it \"failed\"\n"), ExitCode::kFailure);
  EXPECT_EQ(Out(), "");
  EXPECT_EQ(Err(), "error: it \"failed\"\n");
  output.set_wants_json(true);
  output.Fail(ExitCode::kUsage, "again");
  EXPECT_EQ(Out(), "{\"error\":\"again\"}\n");
}

TEST_F(OutputTest, FramesReplaceEachOtherOnATerminal) {
  Output output(out_, err_, kTerminal, kTerminal);
  output.BeginFrame();
  output.PrintText("one\ntwo\n");
  output.EndFrame();
  EXPECT_EQ(Out(), "one\ntwo\n");
  output.BeginFrame();
  output.PrintText("a line that takes two rows\n");
  output.EndFrame();
  EXPECT_EQ(Out(), "one\ntwo\n\x1b[2A\r\x1b[Ja line that takes two rows\n");
  output.BeginFrame();
  output.Fail(ExitCode::kUnreachable, "away");
  output.EndFrame();
  EXPECT_TRUE(Out().ends_with("\x1b[2A\r\x1b[J\x1b[31merror:\x1b[0m away\n")) << Out();
  EXPECT_EQ(Err(), "");
}

TEST_F(OutputTest, AFrameThatIsTooHighLosesItsLastLines) {
  Output output(out_, err_, kTerminal, {});
  output.BeginFrame();
  output.PrintText("1\n2\n3\n4\n5\n");
  output.EndFrame();
  EXPECT_EQ(Out(), "1\n2\n3\n");
}

TEST_F(OutputTest, FramesFollowEachOtherInAPipe) {
  Output output(out_, err_, {}, {});
  for (const char* text : {"one\n", "two\n"}) {
    output.BeginFrame();
    output.PrintText(text);
    output.EndFrame();
  }
  output.BeginFrame();
  output.PrintText("dropped\n");
  output.DropFrame();
  EXPECT_EQ(Out(), "one\n\ntwo\n");
}

TEST_F(OutputTest, ProgressIsShownOnATerminalOnlyAndRemovedInTheEnd) {
  Output pipe(out_, err_, {}, {});
  Progress(pipe, "load").Show(0.5);
  EXPECT_EQ(Err(), "");
  Output terminal(out_, err_, {}, {.is_terminal = true});
  {
    Progress progress(terminal, "load");
    progress.Show(0.5, "5 of 10");
    const std::string shown = Err();
    EXPECT_TRUE(shown.starts_with("\r\x1b[Kload █")) << shown;
    EXPECT_TRUE(shown.ends_with(" 50 % 5 of 10")) << shown;
    progress.Show(0.5, "5 of 10");
    EXPECT_EQ(Err(), shown);
  }
  EXPECT_TRUE(Err().ends_with("5 of 10\r\x1b[K"));
}

TEST(Output, SaysThatItCouldNotBeWritten) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const messages = open_memstream(&text, &size);
  {
    Output output(full, messages, {}, {});
    EXPECT_EQ(output.Finish(ExitCode::kSuccess), ExitCode::kSuccess);
    // More than is buffered, so that the error comes long before the end.
    output.PrintText(std::string(1 << 20, 'x'));
    EXPECT_FALSE(output.Flush());
    EXPECT_EQ(output.Finish(ExitCode::kSuccess), ExitCode::kFailure);
    EXPECT_EQ(output.Finish(ExitCode::kUsage), ExitCode::kUsage);
  }
  std::fclose(full);
  std::fclose(messages);
  EXPECT_TRUE(std::string_view(text).starts_with(
      "error: cannot write to the standard output: No space left on device\n"))
      << text;
  std::free(text);
}

}  // namespace
}  // namespace nereid::cli
