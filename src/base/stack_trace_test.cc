// SPDX-License-Identifier: Apache-2.0
#include "base/stack_trace.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <latch>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/heartbeat.h"
#include "base/platform.h"
#include "base/thread.h"

namespace nereid::base {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::MatchesRegex;

std::string Describe(const void* address) {
  std::array<char, kFrameTextSize> text;
  return {text.data(), DescribeFrame(address, text)};
}

TEST(StackTrace, NamesTheLibraryAndTheExportedFunctionOfAnAddress) {
  // A function that no sanitizer puts its own in the place of.
  const auto* const function = static_cast<const char*>(::dlsym(RTLD_DEFAULT, "getsubopt"));
  EXPECT_THAT(Describe(function + 4),
              MatchesRegex("libc\\.so.*\\+0x[0-9a-f]+ \\(getsubopt\\+0x4\\)"));
}

TEST(StackTrace, SaysOnlyTheNumberOfAnAddressInNoLibrary) {
  EXPECT_EQ(Describe(nullptr), "0x0");
  const int local = 0;
  EXPECT_THAT(Describe(&local), MatchesRegex("0x[0-9a-f]+"));
}

TEST(StackTrace, ReadsTheStackOfTheCallingThread) {
  PrepareStackTraces();
  StackTrace stack;
  ReadOwnStack(stack);
  EXPECT_GT(stack.size, 3u);
  EXPECT_THAT(DescribeStack(stack), Contains(HasSubstr("base_test+0x")));
}

// A thread that sleeps in a system call until it is told to end.
class SleepingThread {
 public:
  explicit SleepingThread(bool blocks_signals)
      : thread_("sleeping", [this, blocks_signals] {
          if (blocks_signals) {
            sigset_t all;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
          }
          id_ = ThisThreadId();
          started_.count_down();
          char byte = 0;
          EXPECT_EQ(::read(pipe_.ends[0], &byte, 1), 1);  // goes on after the signal
        }) {
    started_.wait();
  }
  ~SleepingThread() {
    EXPECT_EQ(::write(pipe_.ends[1], "x", 1), 1);
    thread_.Join();
    ::close(pipe_.ends[0]);
    ::close(pipe_.ends[1]);
  }
  pid_t id() const { return id_; }

 private:
  struct Pipe {
    Pipe() { EXPECT_EQ(::pipe(ends), 0); }
    int ends[2] = {};
  } pipe_;
  std::latch started_{1};
  pid_t id_ = 0;
  Thread thread_;
};

// ThreadSanitizer keeps signals from a thread until a call returns.
constexpr const char* kNoSignals = "a thread that sleeps gets no signal";

TEST(StackTrace, ReadsTheStackOfAThreadThatSleepsWithoutWakingIt) {
  if (kHasThreadSanitizer) GTEST_SKIP() << kNoSignals;
  PrepareStackTraces();
  SleepingThread thread(/*blocks_signals=*/false);
  for (int i = 0; i < 3; ++i) {
    const StackTrace stack = ReadStackOf(thread.id());
    EXPECT_THAT(DescribeStack(stack), Contains(HasSubstr("base_test+0x")));
  }
}

TEST(StackTrace, IsEmptyForAThreadThatDoesNotAnswerAndWorksForTheNextOne) {
  if (kHasThreadSanitizer) GTEST_SKIP() << kNoSignals;
  PrepareStackTraces();
  SleepingThread deaf(/*blocks_signals=*/true);
  EXPECT_EQ(ReadStackOf(deaf.id()).size, 0u);
  SleepingThread other(/*blocks_signals=*/false);
  EXPECT_GT(ReadStackOf(other.id()).size, 0u);
}

TEST(StackTrace, IsEmptyForAThreadThatIsGone) {
  PrepareStackTraces();
  EXPECT_EQ(ReadStackOf(0x7ffffff0).size, 0u);
}

}  // namespace
}  // namespace nereid::base
