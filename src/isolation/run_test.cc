// SPDX-License-Identifier: Apache-2.0
// The process of an isolated model as the server starts it, with the test in the server's place.
#include "isolation/run.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "isolation_backend/records.h"
#include "isolation_profile/confinement_text.h"
#include "isolation_profile/program.h"
#include "python_backend/mailboxes.h"

namespace nereid::isolation {
namespace {

using python::Work;

// What the process may do. It may open all files, so that the kernel needs no Landlock.
const std::string kMayOpenAll = std::string("files") + kSeparator + "1" + kSeparator;

TRITONSERVER_Server& NoServer() {
  static std::byte nothing{};
  return reinterpret_cast<TRITONSERVER_Server&>(nothing);
}

class RunTest : public testing::Test {
 protected:
  ~RunTest() override {
    if (process_ > 0) Wait();
  }

  // Starts the process with what follows the name of the model on the command line.
  void Start(std::vector<std::string> arguments) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = base::UniqueFd(ends[0]);
    const base::UniqueFd other(ends[1]);
    arguments.insert(arguments.begin(), {"nereid", kProgramMode, "model"});
    process_ = fork();
    ASSERT_GE(process_, 0);
    if (process_ > 0) return;
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (other.get() != 3) dup2(other.get(), 3);
    if (socket_.get() != 3) close(socket_.get());
    _exit(RunIsolatedModel(static_cast<int>(arguments.size()), argv.data(), NoServer));
  }
  // Sends the greeting, with a descriptor unless that is -1.
  void Greet(int memory, const std::string& server_pid = std::to_string(getpid())) {
    TextList list('\0');
    list.Add(key::kServerPid, server_pid);
    list.Add(key::kModel, "model");
    list.Add(key::kVersion, "1");
    list.Add(key::kBackend, "nonesuch");
    std::string text = list.text();
    iovec data{text.data(), text.size()};
    alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (memory >= 0) {
      message.msg_control = ancillary;
      message.msg_controllen = sizeof(ancillary);
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &memory, sizeof(memory));
    }
    ASSERT_GT(sendmsg(socket_.get(), &message, MSG_NOSIGNAL), 0);
  }
  // Waits for the end of the process. Returns its status, or the negative number of a signal.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(process_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Returns what the process says to the server about itself before it ends.
  std::string LastWords() {
    std::string text(4096, '\0');
    const ssize_t size = recv(socket_.get(), text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }
  // Has some work done. Returns the error, or nothing.
  std::string ErrorOf(Work work, std::string_view text) {
    auto result =
        work_.RunText(work, text, std::chrono::steady_clock::now() + std::chrono::minutes(1));
    return result.ok() ? "" : result.TakeError().message();
  }

  base::UniqueFd socket_;
  pid_t process_ = 0;
  std::unique_ptr<python::Region> region_ = std::move(python::Region::Create()).value();
  python::Vitals vitals_{"model", region_->control(), [] {}, "Process"};
  python::CallRing ring_{*region_};
  python::BlockPool blocks_{*region_,
                            {.begin = python::kBlocksBegin, .end = region_->inputs_begin()}};
  python::WorkLine work_{*region_, vitals_, blocks_, ring_};
};

TEST(Run, IsAskedForByTheFirstArgumentOnly) {
  const auto is_for = [](std::vector<std::string> arguments) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return IsForIsolatedModel(static_cast<int>(arguments.size()), argv.data());
  };
  EXPECT_TRUE(is_for({"nereid", kProgramMode}));
  EXPECT_TRUE(is_for({"nereid", kProgramMode, "model", "text"}));
  EXPECT_FALSE(is_for({"nereid"}));
  EXPECT_FALSE(is_for({}));
  EXPECT_FALSE(is_for({kProgramMode}));
  EXPECT_FALSE(is_for({"nereid", std::string(kProgramMode) + "s"}));
  EXPECT_FALSE(is_for({"nereid", "--model-repository", kProgramMode}));
}

TEST_F(RunTest, BecomesTheProgramThatFollowsConfined) {
  Start({kMayOpenAll, "/bin/sh", "-c", "exit 7"});
  EXPECT_EQ(Wait(), 7);
}

TEST_F(RunTest, TellsTheServerWhichProgramDoesNotExist) {
  Start({kMayOpenAll, "/no/such/program"});
  EXPECT_EQ(LastWords(), "failed to start '/no/such/program': No such file or directory");
  EXPECT_EQ(Wait(), 1);
}

TEST_F(RunTest, EndsWithoutAGreetingOrItsMemory) {
  Start({kMayOpenAll});
  socket_.Close();
  EXPECT_EQ(Wait(), 1);
  Start({kMayOpenAll});
  Greet(-1);
  EXPECT_EQ(Wait(), 1);
}

TEST_F(RunTest, EndsForAServerThatIsNotItsParent) {
  Start({kMayOpenAll});
  Greet(region_->fd(), std::to_string(getppid()));
  EXPECT_EQ(Wait(), 1);
}

TEST_F(RunTest, TellsTheServerThatTheMemoryIsUnusable) {
  region_->control().version = python::kProtocolVersion + 1;
  Start({kMayOpenAll});
  Greet(region_->fd());
  EXPECT_EQ(LastWords(), "the worker is not of the server's version");
  EXPECT_EQ(Wait(), 1);
}

TEST_F(RunTest, RefusesWorkThatItCannotDoAndEndsInOrder) {
  Start({kMayOpenAll});
  Greet(region_->fd());
  // The first letter is the code of the error.
  const std::string no_config = ErrorOf(Work::kComplete, "{\"name\":");
  ASSERT_FALSE(no_config.empty());
  EXPECT_EQ(no_config[0], kFirstCode + static_cast<int>(base::StatusCode::kInvalidArgument))
      << no_config;
  const std::string no_backend =
      ErrorOf(Work::kComplete, R"({"name":"model","backend":"nonesuch"})");
  EXPECT_NE(no_backend.find("nonesuch"), std::string::npos) << no_backend;
  const std::string unknown = ErrorOf(static_cast<Work>(77), "");
  EXPECT_NE(unknown.find("something unknown"), std::string::npos) << unknown;
  EXPECT_EQ(ErrorOf(Work::kFinalize, ""), "");
  EXPECT_EQ(Wait(), 0);
}

TEST_F(RunTest, LeavesSignalsForTheServerToDecideAbout) {
  Start({kMayOpenAll});
  Greet(region_->fd());
  ErrorOf(Work::kComplete, "{");  // it is at work
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) {
    ASSERT_EQ(kill(process_, number), 0);
  }
  EXPECT_EQ(ErrorOf(Work::kFinalize, ""), "");
  EXPECT_EQ(Wait(), 0);
}

TEST_F(RunTest, EndsWhenTheServerIsGone) {
  Start({kMayOpenAll});
  Greet(region_->fd());
  ErrorOf(Work::kComplete, "{");
  socket_.Close();
  EXPECT_EQ(Wait(), 1);
}

}  // namespace
}  // namespace nereid::isolation
