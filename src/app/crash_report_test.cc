// SPDX-License-Identifier: Apache-2.0
// SIGABRT stands for all signals here: sanitizers handle the others themselves.
#include "app/crash_report.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/execution_mark.h"

namespace nereid::app {
namespace {

using testing::HasSubstr;
using testing::Not;

// How a process ended, and what it wrote to standard error.
struct End {
  int status = 0;
  std::string text;
};

// Runs `body` in a process that reports crashes. `kill_with` is a signal that it gets from this
// process once it has written a byte; 0 for none.
End RunInChild(const std::function<void()>& body, int kill_with = 0) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(ends[1], STDERR_FILENO);
    InstallCrashReport();
    body();
    _exit(0);
  }
  close(ends[1]);
  End end;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(ends[0], bytes, sizeof bytes)) > 0;) {
    if (end.text.empty() && kill_with != 0) kill(child, kill_with);
    end.text.append(bytes, static_cast<size_t>(count));
  }
  close(ends[0]);
  waitpid(child, &end.status, 0);
  return end;
}

bool EndedBy(const End& end, int signal) {
  return WIFSIGNALED(end.status) && WTERMSIG(end.status) == signal;
}

TEST(CrashReport, NamesTheModelThatTheThreadWasExecuting) {
  const End end = RunInChild([] {
    core::ExecutionMark mark(core::ExecutionMark::Purpose::kLoading, "resnet", 7);
    const core::ExecutionMark::Call call(mark);
    std::abort();
  });
  EXPECT_TRUE(EndedBy(end, SIGABRT));
  EXPECT_THAT(end.text, HasSubstr("the process crashed: SIGABRT"));
  EXPECT_THAT(end.text, HasSubstr("nereid: it was "));
  EXPECT_THAT(end.text, HasSubstr("resnet"));
  EXPECT_THAT(end.text, HasSubstr("its stack"));
  EXPECT_THAT(end.text, Not(HasSubstr("sent by process")));
}

TEST(CrashReport, BlamesNoModelWhoseCallHasEnded) {
  const End end = RunInChild([] {
    core::ExecutionMark mark(core::ExecutionMark::Purpose::kLoading, "resnet", 7);
    {
      const core::ExecutionMark::Call call(mark);
    }
    std::abort();
  });
  EXPECT_TRUE(EndedBy(end, SIGABRT));
  EXPECT_THAT(end.text, HasSubstr("that thread was executing no model"));
  EXPECT_THAT(end.text, Not(HasSubstr("resnet")));
}

TEST(CrashReport, SaysWhichProcessSentTheSignal) {
  const End end = RunInChild(
      [] {
        EXPECT_EQ(write(STDERR_FILENO, ".", 1), 1);
        for (;;) pause();
      },
      SIGABRT);
  EXPECT_TRUE(EndedBy(end, SIGABRT));
  EXPECT_THAT(end.text, HasSubstr("sent by process " + std::to_string(getpid())));
}

TEST(CrashReport, LeavesSignalsAloneThatSomethingElseHandles) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, [](int) { _exit(9); });
    InstallCrashReport();
    std::abort();
  }
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "nothing is reported";
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

TEST(CrashReport, IsNotMadeByAProcessThatEndsInOrder) {
  const End end = RunInChild([] {});
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0);
  EXPECT_EQ(end.text, "");
}

}  // namespace
}  // namespace nereid::app
