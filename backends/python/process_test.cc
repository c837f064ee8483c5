// SPDX-License-Identifier: Apache-2.0
#include "python_backend/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

namespace nereid::python {
namespace {

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0); }
  ~SupervisorTest() override {
    close(ends_[0]);
    CloseTheirEnd();
  }

  // Runs a shell script; `how_` tells its end.
  backend::Result<std::shared_ptr<Process>> Run(const std::string& script,
                                                std::vector<std::string> environment = {}) {
    Command command{.arguments = {"/bin/sh", "-c", script},
                    .environment = std::move(environment),
                    .channel = ends_[1]};
    return supervisor_.Start(std::move(command),
                             [this](std::string how) { how_.set_value(std::move(how)); });
  }
  std::string How() { return how_.get_future().get(); }
  void CloseTheirEnd() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  // Reads what the process writes to its channel until it closes it.
  std::string ReadAll() {
    CloseTheirEnd();
    std::string text;
    char buffer[256];
    for (ssize_t got = 0; (got = read(ends_[0], buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

  int ends_[2] = {-1, -1};
  std::promise<std::string> how_;
  Supervisor supervisor_;
};

TEST_F(SupervisorTest, ReportsTheExitStatusOfAProcess) {
  ASSERT_TRUE(Run("exit 3").ok());
  EXPECT_EQ(How(), "it exited with status 3");
}

TEST_F(SupervisorTest, ReportsTheSignalThatKillsAProcess) {
  ASSERT_TRUE(Run("kill -TERM $$").ok());
  EXPECT_EQ(How(), "it was killed by signal 15 (Terminated)");
}

TEST_F(SupervisorTest, KillsAProcessThatHangs) {
  auto process = Run("read forever <&3");
  ASSERT_TRUE(process.ok());
  process.value()->Kill();
  EXPECT_EQ(How(), "it was killed by signal 9 (Killed)");
  process.value()->Kill();  // does nothing to a process that has ended
}

TEST_F(SupervisorTest, GivesAProcessItsChannelAndItsVariablesOnly) {
  ASSERT_TRUE(Run("echo \"$COLOUR $HOME\" >&3", {"COLOUR=red"}).ok());
  EXPECT_EQ(ReadAll(), "red \n");
  EXPECT_EQ(How(), "it exited with status 0");
}

TEST_F(SupervisorTest, ClosesAllOtherDescriptorsOfTheServer) {
  const int open = dup2(ends_[0], 77);
  ASSERT_TRUE(Run("for n in 4 5 6 7 8 9; do (true <&$n) 2>/dev/null && echo $n >&3; done; "
                  "test -e /proc/self/fd/77 && echo 77 >&3; exit 0")
                  .ok());
  EXPECT_EQ(ReadAll(), "");
  EXPECT_EQ(How(), "it exited with status 0");
  close(open);
}

TEST_F(SupervisorTest, EndsWhatAProcessHasStartedWithIt) {
  // The child keeps the channel open until it is killed.
  ASSERT_TRUE(Run("sleep 1000 & exit 0").ok());
  EXPECT_EQ(ReadAll(), "");
  EXPECT_EQ(How(), "it exited with status 0");
}

TEST_F(SupervisorTest, SaysWhichProgramItCannotStart) {
  Command command{.arguments = {"/no/such/python"}, .environment = {}, .channel = ends_[1]};
  auto process = supervisor_.Start(std::move(command), [](std::string) {});
  ASSERT_FALSE(process.ok());
  EXPECT_STREQ(process.TakeError().message(),
               "failed to start '/no/such/python': No such file or directory");
}

TEST_F(SupervisorTest, StartsProcessesForManyThreadsAtOnce) {
  std::vector<std::future<std::string>> ends;
  for (int i = 0; i < 8; ++i) {
    ends.push_back(std::async(std::launch::async, [this, i] {
      auto how = std::make_shared<std::promise<std::string>>();
      Command command{.arguments = {"/bin/sh", "-c", "exit " + std::to_string(i)},
                      .environment = {},
                      .channel = ends_[1]};
      auto process =
          supervisor_.Start(std::move(command), [how](std::string text) { how->set_value(text); });
      return process.ok() ? how->get_future().get() : process.TakeError().message();
    }));
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(ends[static_cast<size_t>(i)].get(), "it exited with status " + std::to_string(i));
  }
}

TEST(Supervisor, KillsAtItsEndWhatStillRuns) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::promise<std::string> how;
  {
    Supervisor supervisor;
    Command command{
        .arguments = {"/bin/sh", "-c", "read forever <&3"}, .environment = {}, .channel = ends[1]};
    ASSERT_TRUE(
        supervisor
            .Start(std::move(command), [&how](std::string text) { how.set_value(std::move(text)); })
            .ok());
  }
  EXPECT_EQ(how.get_future().get(), "it was killed by signal 9 (Killed)");
  close(ends[0]);
  close(ends[1]);
}

TEST(EnvironmentVariables, AreSetReplacedAndRead) {
  std::vector<std::string> environment = {"PATH=/bin", "PATHS=x"};
  EXPECT_EQ(Variable(environment, "PATH"), "/bin");
  EXPECT_EQ(Variable(environment, "HOME"), "");
  SetVariable(environment, "PATH", "/usr/bin");
  SetVariable(environment, "HOME", "/root=1");
  EXPECT_EQ(environment, (std::vector<std::string>{"PATHS=x", "PATH=/usr/bin", "HOME=/root=1"}));
  EXPECT_EQ(Variable(environment, "HOME"), "/root=1");
}

TEST(EnvironmentVariables, OfThisProcessAreThoseThatGetenvSees) {
  setenv("NEREID_TEST_COLOUR", "green", 1);
  EXPECT_EQ(Variable(CurrentEnvironment(), "NEREID_TEST_COLOUR"), "green");
  unsetenv("NEREID_TEST_COLOUR");
  EXPECT_EQ(Variable(CurrentEnvironment(), "NEREID_TEST_COLOUR"), "");
}

}  // namespace
}  // namespace nereid::python
