// SPDX-License-Identifier: Apache-2.0
#include "base/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <latch>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/platform.h"
#include "base/temporary_folder.h"

namespace nereid::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

// A watchdog that looks when the test says so: everything may work for an hour, which only the time
// that the test passes to Look can reach.
constexpr seconds kHour{3600};

TEST(Watchdog, FindsWhatWorksForLongerThanItsLimitWithoutABeat) {
  Watchdog watchdog(kHour);
  Heartbeat heartbeat;
  const Watchdog::Watch watch =
      watchdog.Add({.heartbeat = heartbeat, .kind = "reactor", .name = "r0"});
  heartbeat.Start();
  watchdog.Look(kHour);  // it began to work at an unknown time before this look
  EXPECT_FALSE(watchdog.has_stuck());
  watchdog.Look(kHour - seconds(1));
  EXPECT_FALSE(watchdog.has_stuck());
  watchdog.Look(seconds(1));
  EXPECT_TRUE(watchdog.has_stuck());
  ASSERT_EQ(watchdog.AllStuck().size(), 1u);
  EXPECT_EQ(watchdog.AllStuck()[0].Describe(), "the reactor 'r0' has not got on for 3600 s");
  watchdog.Look(seconds(5));
  EXPECT_EQ(watchdog.AllStuck()[0].time, seconds(3605));
  EXPECT_EQ(watchdog.Counts()["reactor"].alarms, 1u);
}

TEST(Watchdog, KnowsThatAThreadAtRestIsNotStuck) {
  Watchdog watchdog(kHour);
  Heartbeat heartbeat;
  const Watchdog::Watch watch = watchdog.Add({.heartbeat = heartbeat, .kind = "reactor"});
  heartbeat.Start();
  heartbeat.Rest();
  for (int i = 0; i < 3; ++i) watchdog.Look(2 * kHour);
  EXPECT_FALSE(watchdog.has_stuck());
}

TEST(Watchdog, KnowsThatAThreadThatIsAlwaysBusyGetsOn) {
  Watchdog watchdog(kHour);
  Heartbeat heartbeat;
  const Watchdog::Watch watch = watchdog.Add({.heartbeat = heartbeat, .kind = "reactor"});
  heartbeat.Start();
  for (int i = 0; i < 5; ++i) {
    watchdog.Look(kHour);
    heartbeat.Beat();
  }
  EXPECT_FALSE(watchdog.has_stuck());
}

TEST(Watchdog, NoticesThatItGetsOnAgain) {
  Watchdog watchdog(kHour);
  Heartbeat heartbeat;
  const Watchdog::Watch watch = watchdog.Add({.heartbeat = heartbeat, .kind = "instance"});
  heartbeat.Start();
  watchdog.Look(seconds(1));
  watchdog.Look(kHour);
  ASSERT_TRUE(watchdog.has_stuck());
  heartbeat.Beat();
  watchdog.Look(seconds(1));
  EXPECT_FALSE(watchdog.has_stuck());
  EXPECT_THAT(watchdog.AllStuck(), IsEmpty());
  EXPECT_EQ(watchdog.Counts()["instance"].stuck, 0u);
  EXPECT_EQ(watchdog.Counts()["instance"].alarms, 1u);
}

TEST(Watchdog, ForgetsWhatIsNoLongerWatched) {
  Watchdog watchdog(kHour);
  Heartbeat heartbeat;
  {
    const Watchdog::Watch watch = watchdog.Add({.heartbeat = heartbeat, .kind = "instance"});
    heartbeat.Start();
    watchdog.Look(seconds(1));
    watchdog.Look(kHour);
    ASSERT_TRUE(watchdog.has_stuck());
  }
  EXPECT_FALSE(watchdog.has_stuck());
  EXPECT_EQ(watchdog.Counts()["instance"].stuck, 0u);
}

TEST(Watchdog, LetsWorkWithoutALimitTakeAsLongAsItLikes) {
  Watchdog watchdog(kHour);
  Heartbeat heartbeat;
  const Watchdog::Watch watch =
      watchdog.Add({.heartbeat = heartbeat, .kind = "execution", .limit = seconds(0)});
  heartbeat.Start();
  for (int i = 0; i < 10; ++i) watchdog.Look(kHour);
  EXPECT_FALSE(watchdog.has_stuck());
  EXPECT_THAT(watchdog.Counts(), IsEmpty());
}

TEST(Watchdog, CountsThePartsOfAnOwnerThatAreStuck) {
  Watchdog watchdog(kHour);
  Heartbeat thread;
  Heartbeat execution;
  Heartbeat other;
  int model = 0;
  int parts[2] = {};
  const Watchdog::Watch watches[] = {
      watchdog.Add({thread, "instance", "a", std::nullopt, &parts[0], &model}),
      watchdog.Add({execution, "execution", "a", std::nullopt, &parts[0], &model}),
      watchdog.Add({other, "execution", "b", std::nullopt, &parts[1], &model})};
  thread.Start();
  execution.Start();
  watchdog.Look(seconds(1));
  watchdog.Look(kHour);
  EXPECT_EQ(watchdog.Summarize(&model).parts, 2u);
  EXPECT_EQ(watchdog.Summarize(&model).stuck_parts, 1u);
  EXPECT_EQ(watchdog.Summarize(&parts).parts, 0u);
}

// A thread that a test blocks and lets go.
class BlockedThread {
 public:
  explicit BlockedThread(Heartbeat& heartbeat)
      : thread_("blocked", [this, &heartbeat] {
          heartbeat.Start();
          char byte = 0;
          while (::read(pipe_[0], &byte, 1) == -1) {
          }
          heartbeat.Rest();
        }) {}
  ~BlockedThread() {
    if (!is_free_) LetGo();
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  void LetGo() {
    is_free_ = true;
    EXPECT_EQ(::write(pipe_[1], "x", 1), 1);
    thread_.Join();
  }

 private:
  struct Pipe {
    Pipe() { EXPECT_EQ(::pipe(ends), 0); }
    int operator[](int i) const { return ends[i]; }
    int ends[2] = {};
  } pipe_;
  bool is_free_ = false;
  Thread thread_;
};

// Waits for up to a minute.
void WaitUntil(const std::function<bool()>& condition) {
  const TimePoint end = std::chrono::steady_clock::now() + seconds(60);
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ASSERT_TRUE(condition());
}

class LoggedWatchdog : public testing::Test {
 protected:
  LoggedWatchdog() {
    LogOptions options;
    options.file = testing::TempDir() + "watchdog-" + std::to_string(::getpid()) + ".log";
    path_ = options.file;
    EXPECT_TRUE(ConfigureLog(options).ok());
  }
  ~LoggedWatchdog() override {
    EXPECT_TRUE(ConfigureLog({}).ok());
    ::unlink(path_.c_str());
  }
  std::string Log() {
    FlushLog();
    std::string text;
    FILE* const file = std::fopen(path_.c_str(), "r");
    for (int c = 0; file != nullptr && (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    if (file != nullptr) std::fclose(file);
    return text;
  }

 private:
  std::string path_;
};

TEST_F(LoggedWatchdog, LogsTheStackOfARealThreadThatBlocksAndItsRecovery) {
  Heartbeat heartbeat;
  Watchdog watchdog(seconds(1), [&](pid_t thread) {
    return thread == heartbeat.thread() ? "it executes model 'm'" : "";
  });
  const Watchdog::Watch watch =
      watchdog.Add({.heartbeat = heartbeat, .kind = "instance", .name = "m_0"});
  BlockedThread thread(heartbeat);
  WaitUntil([&] { return watchdog.has_stuck(); });
  WaitUntil([&] { return Log().find("it executes model 'm'") != std::string::npos; });
  EXPECT_THAT(Log(), HasSubstr("watchdog: the instance 'm_0' has not got on for"));
  // What the thread waits in. ThreadSanitizer keeps the signal from it until the call returns.
  if (!kHasThreadSanitizer) {
    EXPECT_THAT(Log(), HasSubstr("read+0x"));
  }
  thread.LetGo();
  WaitUntil([&] { return !watchdog.has_stuck(); });
  WaitUntil([&] { return Log().find("gets on again") != std::string::npos; });
}

}  // namespace
}  // namespace nereid::base
