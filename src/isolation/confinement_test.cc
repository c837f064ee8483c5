// SPDX-License-Identifier: Apache-2.0
#include "isolation/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <random>

#include "base/temporary_folder.h"

namespace nereid::isolation {
namespace {

// Runs `body` in a child, because nobody gets rights back; returns the error number that it
// returns.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Returned where a process could not be confined.
constexpr int kNotConfined = 200;
// Returned where the kernel has no Landlock, which the log then says.
constexpr int kNoLandlock = 201;

// Returns the error number of a system call in a process that may open all files.
int ErrorOf(const std::function<long()>& call) {
  return InChild([&] {
    if (!Confine({.may_use_all_files = true}).ok()) return kNotConfined;
    return call() < 0 ? errno : 0;
  });
}

TEST(Confinement, IsReadFromItsText) {
  const Confinement read = Confinement::Read(
      "m\x1f/model\x1fw\x1f/tmp/x\x1fr\x1f/more\x1fl\x1f/backend.so\x1fnet\x1f"
      "1\x1fmem\x1f"
      "4096\x1f");
  EXPECT_EQ(read.models, std::vector<std::string>{"/model"});
  EXPECT_EQ(read.readable, std::vector<std::string>{"/more"});
  EXPECT_EQ(read.writable, std::vector<std::string>{"/tmp/x"});
  EXPECT_EQ(read.libraries, std::vector<std::string>{"/backend.so"});
  EXPECT_TRUE(read.may_use_network);
  EXPECT_FALSE(read.may_use_all_files);
  EXPECT_FALSE(read.is_strict);
  EXPECT_EQ(read.data_bytes, 4096);
}

TEST(Confinement, TakesSocketsAway) {
  EXPECT_EQ(InChild([] {
              if (!Confine({.may_use_all_files = true}).ok()) return kNotConfined;
              return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
            }),
            EPERM);
}

TEST(Confinement, LeavesSocketsToThoseWhoMayUseThem) {
  EXPECT_EQ(InChild([] {
              if (!Confine({.may_use_network = true, .may_use_all_files = true}).ok())
                return kNotConfined;
              return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
            }),
            0);
}

TEST(Confinement, TakesSignalsToOthersAway) {
  EXPECT_EQ(InChild([] {
              if (!Confine({.may_use_all_files = true}).ok()) return kNotConfined;
              return kill(getppid(), 0) < 0 ? errno : 0;
            }),
            EPERM);
}

TEST(Confinement, TakesFilesAwayWhereTheKernelCan) {
  const int result = InChild([] {
    const auto lacking = Confine({});
    if (!lacking.ok()) return kNotConfined;
    if (!lacking->empty()) return EACCES;  // without Landlock, which the log then says
    if (open("/usr", O_RDONLY | O_DIRECTORY) < 0) return errno + 100;
    return open("/tmp", O_RDONLY | O_DIRECTORY) < 0 ? errno : 0;
  });
  EXPECT_EQ(result, EACCES);
}

TEST(Confinement, IsReadFromAnyTextWithoutGrantingWhatItDoesNotSay) {
  std::mt19937 random(1);
  const std::string_view pieces[] = {"m",    "r",       "w",    "net",      "files", "mem",
                                     "must", "unknown", "\x1f", "\x1f\x1f", "/a",    "0",
                                     "01",   "1 ",      "yes",  ""};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint32_t i = random() % 12; i > 0; --i) text += pieces[random() % std::size(pieces)];
    const Confinement read = Confinement::Read(text);
    EXPECT_FALSE(read.may_use_network) << text;
    EXPECT_FALSE(read.may_use_all_files) << text;
  }
  const Confinement cut = Confinement::Read("m\x1f/model\x1fnet");
  EXPECT_EQ(cut.models, std::vector<std::string>{"/model"});
  EXPECT_FALSE(cut.may_use_network);
}

// Without the filter, each of these calls would end with another error number, or with none.
TEST(Confinement, TakesCallsAwayThatReachBeyondTheProcess) {
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_unshare, 0); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_setns, -1, 0); }), EPERM);
  EXPECT_EQ(
      ErrorOf([] { return syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr, 0, 0); }),
      EPERM);
  EXPECT_EQ(
      ErrorOf([] { return syscall(SYS_process_vm_writev, getpid(), nullptr, 0, nullptr, 0, 0); }),
      EPERM);
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_pidfd_getfd, -1, 0, 0); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_keyctl, -1); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_io_uring_enter, -1, 0, 0, 0, nullptr, 0); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_ptrace, 0x4206, 999'999'999, 0, 0); }), EPERM);
}

TEST(Confinement, TakesNewNamespacesAwayAndLeavesNewProcesses) {
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return syscall(SYS_clone3, nullptr, 0); }), ENOSYS);
  EXPECT_EQ(ErrorOf([] { return InChild([] { return 5; }) == 5 ? 0 : -1; }), 0);
  EXPECT_EQ(ErrorOf([] { return std::async(std::launch::async, [] { return 0; }).get(); }), 0);
}

TEST(Confinement, LeavesAProcessItsOwnLimitsAndSignalsAndNoOthers) {
  const auto limit_of = [](pid_t process) {
    rlimit limit{};
    return static_cast<long>(syscall(SYS_prlimit64, process, RLIMIT_CORE, nullptr, &limit));
  };
  EXPECT_EQ(ErrorOf([&] { return limit_of(0); }), 0);
  EXPECT_EQ(ErrorOf([&] { return limit_of(getpid()); }), 0);
  EXPECT_EQ(ErrorOf([&] { return limit_of(getppid()); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return kill(getpid(), 0); }), 0);
  // Programs that abort, as a failed assertion does, must still end so.
  EXPECT_EQ(InChild([] {
              if (!Confine({.may_use_all_files = true}).ok()) return kNotConfined;
              std::abort();
            }),
            -SIGABRT);
}

TEST(Confinement, TakesTheCallsOfAnotherArchitectureAway) {
  constexpr long kX32 = 0x40000000;
  EXPECT_EQ(ErrorOf([] { return syscall(kX32 | SYS_getpid); }), EPERM);
}

TEST(Confinement, HoldsForThreadsThatRanBeforeAndForProcessesThatAreStartedLater) {
  const auto make_socket = [] { return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0; };
  EXPECT_EQ(InChild([&] {
              std::promise<void> confined;
              std::future<int> earlier = std::async(std::launch::async, [&] {
                confined.get_future().wait();
                return make_socket();
              });
              const bool is_done = Confine({.may_use_all_files = true}).ok();
              confined.set_value();
              const int result = earlier.get();
              return is_done ? result : kNotConfined;
            }),
            EPERM);
  EXPECT_EQ(InChild([&] {
              if (!Confine({.may_use_all_files = true}).ok()) return kNotConfined;
              return InChild(make_socket);
            }),
            EPERM);
}

// Returns how much private memory this process has, as the kernel counts it for the limit. With a
// sanitizer that is far more than the process uses.
uint64_t DataBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == "VmData:" && status >> kib) return kib << 10;
  }
  return 0;
}

TEST(Confinement, LimitsMemoryAndCannotBeRaisedAgain) {
  constexpr uint64_t kMore = uint64_t{256} << 20;
  const auto take = [](uint64_t bytes) {
    void* const taken =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return taken == MAP_FAILED ? errno : 0;
  };
  const uint64_t limit = DataBytes() + kMore;
  const Confinement limited{.may_use_all_files = true, .data_bytes = limit};
  EXPECT_EQ(InChild([&] { return Confine(limited).ok() ? take(kMore * 2) : kNotConfined; }),
            ENOMEM);
  EXPECT_EQ(InChild([&] { return Confine(limited).ok() ? take(kMore / 64) : kNotConfined; }), 0);
  // An administrator's process keeps the right to raise its limits.
  if (geteuid() == 0) return;
  EXPECT_EQ(InChild([&] {
              if (!Confine(limited).ok()) return kNotConfined;
              const rlimit more{.rlim_cur = limit * 2, .rlim_max = limit * 2};
              return setrlimit(RLIMIT_DATA, &more) < 0 ? errno : 0;
            }),
            EPERM);
}

TEST(Confinement, IsRefusedInStrictModeExactlyWhereItLacksSomething) {
  const int lacks = InChild([] {
    const auto lacking = Confine({});
    return !lacking.ok() ? kNotConfined : lacking->empty() ? 0 : 1;
  });
  const int is_refused = InChild([] { return Confine({.is_strict = true}).ok() ? 0 : 1; });
  EXPECT_EQ(is_refused, lacks);
}

// A model's folder beside that of another, which is a secret.
class ConfinedFiles : public testing::Test {
 protected:
  ConfinedFiles() {
    for (const char* const name : {"model", "other", "shared", "output"}) {
      std::filesystem::create_directory(Path(name));
      std::ofstream(Path(name) + "/file") << name;
    }
    std::filesystem::create_symlink(Path("shared/file"), Path("model/weights"));
    std::filesystem::create_symlink("/no/such/file", Path("model/dangling"));
    std::filesystem::create_symlink(Path("model"), Path("model/loop"));
  }
  std::string Path(const std::string& name) const { return folder_.path + "/" + name; }
  // Returns the error number of opening a file in the confined process.
  int Open(const std::string& name, int flags, bool has_all = false) const {
    return InChild([&] {
      const auto lacking = Confine({.models = {Path("model")},
                                    .writable = {Path("output"), Path("missing")},
                                    .may_use_all_files = has_all});
      if (!lacking.ok()) return kNotConfined;
      if (!lacking->empty()) return kNoLandlock;
      return open(Path(name).c_str(), flags | O_CLOEXEC, 0600) < 0 ? errno : 0;
    });
  }
  void SetUp() override {
    if (Open("model/file", O_RDONLY) == kNoLandlock) GTEST_SKIP() << "this kernel has no Landlock";
  }

  base::TemporaryFolder folder_ = *base::MakeTemporaryFolder("confinement-test");
};

TEST_F(ConfinedFiles, OfTheModelAreReadAndNotWritten) {
  EXPECT_EQ(Open("model/file", O_RDONLY), 0);
  EXPECT_EQ(Open("model/file", O_WRONLY), EACCES);
  EXPECT_EQ(Open("model/file", O_RDONLY | O_TRUNC), EACCES);
  EXPECT_EQ(Open("model/new", O_WRONLY | O_CREAT), EACCES);
}

TEST_F(ConfinedFiles, ThatLinksOfTheModelLeadToAreReadWithoutTheirNeighbours) {
  std::ofstream(Path("shared/neighbour")) << "secret";
  EXPECT_EQ(Open("model/weights", O_RDONLY), 0);
  EXPECT_EQ(Open("shared/file", O_RDONLY), 0);
  EXPECT_EQ(Open("shared/neighbour", O_RDONLY), EACCES);
  EXPECT_EQ(Open("model/loop/file", O_RDONLY), 0);
}

TEST_F(ConfinedFiles, OfOthersAreNotEvenListed) {
  EXPECT_EQ(Open("other/file", O_RDONLY), EACCES);
  EXPECT_EQ(Open("other", O_RDONLY | O_DIRECTORY), EACCES);
  EXPECT_EQ(Open("model/../other/file", O_RDONLY), EACCES);
  EXPECT_EQ(Open("other/file", O_RDONLY, /*has_all=*/true), 0);
}

TEST_F(ConfinedFiles, OfItsWritableFoldersAreWritten) {
  EXPECT_EQ(Open("output/file", O_WRONLY | O_TRUNC), 0);
  EXPECT_EQ(Open("output/new", O_WRONLY | O_CREAT), 0);
}

}  // namespace
}  // namespace nereid::isolation
