// SPDX-License-Identifier: Apache-2.0
// The log as its readers find it: in a file, in three formats.
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/reopen_log.h"
#include "base/temporary_folder.h"
#include "base/unique_fd.h"

namespace nereid::base {
namespace {

class LogTest : public testing::Test {
 protected:
  LogTest() { Configure({}); }
  ~LogTest() override {
    EXPECT_TRUE(ConfigureLog(before_).ok());
    std::filesystem::remove_all(folder_.path);
  }

  // Logs to this test's file.
  void Configure(LogOptions options) {
    options.file = file_;
    ASSERT_TRUE(ConfigureLog(options).ok());
  }
  std::vector<std::string> Lines() const {
    FlushLog();
    std::vector<std::string> lines;
    std::ifstream file(file_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  // What follows the place in the source, or the message of a JSON line.
  std::vector<std::string> Messages() const {
    std::vector<std::string> messages;
    for (const std::string& line : Lines()) {
      const size_t at = line.find("] ");
      messages.push_back(at == std::string::npos ? line : line.substr(at + 2));
    }
    return messages;
  }

  const LogOptions before_ = CurrentLogOptions();
  const TemporaryFolder folder_ = std::move(*MakeTemporaryFolder("test"));
  const std::string file_ = folder_.path + "/log";
};

using Texts = std::vector<std::string>;

TEST_F(LogTest, WritesLevelsThatAreOn) {
  Configure({.info = false});
  NEREID_LOG(kInfo, "information");
  NEREID_LOG(kWarning, "a {}", "warning");
  NEREID_LOG(kError, "an error");
  NEREID_VLOG(1, "much");
  ChangeLog({.info = true, .warning = false, .verbose_level = 1});
  NEREID_LOG(kInfo, "information");
  NEREID_LOG(kWarning, "a warning");
  NEREID_VLOG(1, "much");
  NEREID_VLOG(2, "more");
  EXPECT_EQ(Messages(), (Texts{"\"a warning\"", "\"an error\"", "\"information\"", "\"much\""}));
  EXPECT_EQ(CurrentLogOptions().verbose_level, 1);
  EXPECT_EQ(CurrentLogOptions().file, file_);
}

TEST_F(LogTest, BeginsLinesWithLevelTimeProcessAndPlace) {
  NEREID_LOG(kWarning, "x");
  ChangeLog({.format = LogFormat::kIso8601});
  NEREID_LOG(kError, "x");
  const Texts lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  const std::string process = " " + std::to_string(getpid()) + " log_test.cc:";
  // W1122 17:00:00.123456 4711 log_test.cc:1] "x"
  EXPECT_EQ(lines[0][0], 'W');
  EXPECT_EQ(lines[0].find(process), std::string("W1122 17:00:00.123456").size());
  // 2026-11-22T17:00:00Z E 4711 log_test.cc:1] "x"
  EXPECT_EQ(lines[1].find("Z E" + process), std::string("2026-11-22T17:00:00").size());
}

TEST_F(LogTest, CanWriteJsonLines) {
  Configure({.verbose_level = 1, .format = LogFormat::kJson});
  NEREID_LOG(kError, "broken: \"{}\"", "x");
  NEREID_VLOG(1, "fine");
  const Texts lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("{\"time\":\"")) << lines[0];
  EXPECT_NE(lines[0].find(R"(,"level":"error","pid":)"), std::string::npos) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(R"(,"message":"broken: \"x\""})")) << lines[0];
  EXPECT_NE(lines[1].find(R"("level":"verbose")"), std::string::npos) << lines[1];
}

// What a client sends may be in any message.
TEST_F(LogTest, LetsNoMessageForgeALineOrSpeakToATerminal) {
  NEREID_LOG(kInfo, "{}", "a\nE0101 00:00:00.000000 1 x.cc:1] \"b\"\r\t\\");
  NEREID_LOG(kInfo, "{}", "\x1b[31m\x7f\xc2\x9b\xe2\x80\xa8");
  NEREID_LOG(kInfo, "{}", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x9f");
  NEREID_LOG(kInfo, "{}", "\xff\xc3(\xed\xa0\x80");
  EXPECT_EQ(Messages(), (Texts{
                            R"("a\nE0101 00:00:00.000000 1 x.cc:1] \"b\"\r\t\\")",
                            R"("\u001b[31m\u007f\u009b\u2028")",
                            "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x9f\"",
                            R"("\ufffd\ufffd(\ufffd\ufffd\ufffd")",
                        }));
}

TEST_F(LogTest, CutsEndlessMessages) {
  NEREID_LOG(kInfo, "{}", std::string(1 << 20, 'x'));
  const Texts lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0].size(), 20'000u);
  EXPECT_TRUE(lines[0].ends_with("xxx... (cut)\"")) << lines[0].substr(lines[0].size() - 30);
}

TEST_F(LogTest, WritesTablesOfSeveralLinesBelowOneStart) {
  const Texts table = {"+---+", "| a\n|", "+---+"};
  NEREID_LOG_LINES(kInfo, table);
  const Texts lines = Lines();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].ends_with("] ")) << lines[0];
  EXPECT_EQ(lines[1], "+---+");
  EXPECT_EQ(lines[2], R"(| a\u000a|)");
  EXPECT_EQ(lines[4], "");
  ChangeLog({.format = LogFormat::kJson});
  NEREID_LOG_LINES(kInfo, table);
  EXPECT_TRUE(Lines().back().ends_with(R"("message":"+---+\n| a\n|\n+---+\n"})")) << Lines().back();
}

TEST_F(LogTest, KeepsItsFileWhenAnotherCannotBeOpened) {
  const Status status = ConfigureLog({.file = folder_.path});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("unable to open log file '" + folder_.path + "': "))
      << status.message();
  NEREID_LOG(kInfo, "still here");
  EXPECT_EQ(Messages(), (Texts{"\"still here\""}));
}

TEST_F(LogTest, IsOpenedAnewAfterARotation) {
  NEREID_LOG(kInfo, "old");
  std::filesystem::rename(file_, file_ + ".1");
  NEREID_LOG(kInfo, "still old");
  ASSERT_TRUE(ReopenLog().ok());
  NEREID_LOG(kInfo, "new");
  EXPECT_EQ(Messages(), (Texts{"\"new\""}));
  std::ifstream moved(file_ + ".1");
  std::string first, second;
  EXPECT_TRUE(std::getline(moved, first) && std::getline(moved, second));
  EXPECT_TRUE(second.ends_with("\"still old\"")) << second;
}

TEST_F(LogTest, LosesNothingOfManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 500; ++i) NEREID_LOG(kInfo, "{}", i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Lines().size(), 2000u);
}

TEST_F(LogTest, CanBeFlushedWhileThreadsWrite) {
  std::atomic<int> writing = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) NEREID_LOG(kInfo, "{}", i);
      --writing;
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (writing > 0) FlushLog();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Lines().size(), 2000u);
}

// Its file is a pipe whose reader is this test.
class LogPipeTest : public LogTest {
 protected:
  LogPipeTest() {
    const std::string path = folder_.path + "/pipe";
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    reader_ = UniqueFd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(ConfigureLog({.file = path}).ok());
  }
  // The log fits in neither the pipe nor the queue.
  void LogMuch() {
    for (int i = 0; i < kMessages; ++i) NEREID_LOG(kInfo, "{} {}", i, std::string(200, '.'));
  }
  // Reads until the last message has been logged and written.
  std::vector<std::string> Read() {
    std::string text;
    char some[65536];
    for (;;) {
      const bool is_written = FlushLog();
      bool is_empty = true;
      for (ssize_t got; (got = read(reader_.get(), some, sizeof some)) > 0; is_empty = false) {
        text.append(some, static_cast<size_t>(got));
      }
      if (is_written && is_empty) break;
    }
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  static constexpr int kMessages = 2000;
  UniqueFd reader_;
};

TEST_F(LogPipeTest, NobodyWaitsForALogThatNobodyReads) {
  LogMuch();
  EXPECT_FALSE(FlushLog());
  LogMuch();
  const std::vector<std::string> first = Read();
  ASSERT_LT(first.size(), static_cast<size_t>(kMessages));
  // The last line says how many of the others are missing.
  const std::string lost = std::to_string(2 * kMessages - (first.size() - 1));
  EXPECT_NE(first.back().find("] \"" + lost + " messages were lost here, because"),
            std::string::npos)
      << first.back();
  EXPECT_EQ(first.back()[0], 'W');
  NEREID_LOG(kInfo, "it is read again");
  const std::vector<std::string> second = Read();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_TRUE(second[0].ends_with("\"it is read again\"")) << second[0];
}

TEST_F(LogPipeTest, TheNextMessageSaysHowManyWereLost) {
  LogMuch();
  EXPECT_FALSE(FlushLog());
  std::string text;
  char some[65536];
  // All that was queued, without a flush.
  const auto has_room = [&] {
    NEREID_LOG(kInfo, "next");
    return text.find("\"next\"") != std::string::npos;
  };
  while (!has_room()) {
    pollfd wait{reader_.get(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 60'000), 1);
    const ssize_t got = read(reader_.get(), some, sizeof some);
    ASSERT_GT(got, 0);
    text.append(some, static_cast<size_t>(got));
  }
  const size_t at = text.find(" messages were lost here, because");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(at, text.find("\"next\""));
  Read();
}

TEST(LogFormats, HaveNames) {
  for (const auto format : {LogFormat::kDefault, LogFormat::kIso8601, LogFormat::kJson}) {
    EXPECT_EQ(ParseLogFormat(LogFormatName(format)), format);
  }
  EXPECT_EQ(ParseLogFormat("iso8601"), std::nullopt);
}

}  // namespace
}  // namespace nereid::base
