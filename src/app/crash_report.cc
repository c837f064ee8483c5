// SPDX-License-Identifier: Apache-2.0
// All that the handler calls is safe in a signal handler: it takes no lock and no memory, and reads
// what may be gone by system calls.
#include "app/crash_report.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>

#include "base/fixed_text.h"
#include "base/memory_reader.h"
#include "base/stack_trace.h"
#include "base/write_all.h"
#include "core/execution_mark.h"

namespace nereid::app {
namespace {

using core::ExecutionMark;

struct Crash {
  int signal;
  std::string_view name;
};
constexpr Crash kCrashes[] = {{SIGSEGV, "SIGSEGV"},
                              {SIGBUS, "SIGBUS"},
                              {SIGFPE, "SIGFPE"},
                              {SIGILL, "SIGILL"},
                              {SIGABRT, "SIGABRT"}};

// How long a report may take: something in it may hang, such as a terminal that does not read.
constexpr unsigned kMaxSeconds = 10;
// How many calls of other threads are listed.
constexpr int kMaxOthers = 16;

// A signal handler has access to globals only. The reader is made before the handler is installed,
// and lives as long as the process.
const base::MemoryReader* reader = nullptr;
std::atomic<pid_t> reporting_thread{0};

pid_t CallingThread() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

void WriteLine(base::FixedText& line) {
  line.Add("\n");
  base::WriteAll(STDERR_FILENO, line.view());
}

void WriteHead(int signal, const siginfo_t& info) {
  std::array<char, 256> memory;
  base::FixedText line(memory);
  line.Add("\nnereid: the process crashed: ");
  for (const Crash& crash : kCrashes) {
    if (crash.signal == signal) line.Add(crash.name);
  }
  if (info.si_code > 0) {
    line.Add(" at address ");
    line.AddHex(reinterpret_cast<uintptr_t>(info.si_addr));
  } else if (info.si_pid != ::getpid()) {
    line.Add(", sent by process ");
    line.AddNumber(info.si_pid);
  }
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  line.Add(", in thread ");
  line.AddNumber(CallingThread());
  line.Add(" ");
  line.AddQuoted(name.data());
  WriteLine(line);
}

// Writes a line for each call in progress on this thread, or on the other threads. Returns whether
// there was any.
bool WriteExecutions(bool is_here, std::string_view indent) {
  int count = 0;
  for (const ExecutionMark::Slot* slot = ExecutionMark::FirstSlot(); slot != nullptr;
       slot = slot->next) {
    if (!slot->is_used.load() || !slot->heartbeat.is_working()) continue;
    if ((slot->heartbeat.thread() == CallingThread()) != is_here) continue;
    if (++count > kMaxOthers) break;
    std::array<char, core::kExecutionTextSize> text;
    std::array<char, core::kExecutionTextSize + 64> memory;
    base::FixedText line(memory);
    line.Add(indent);
    line.Add({text.data(), core::DescribeExecution(*slot, *reader, text)});
    if (!is_here) {
      line.Add(" (thread ");
      line.AddNumber(slot->heartbeat.thread());
      line.Add(")");
    }
    WriteLine(line);
  }
  return count > 0;
}

void WriteText(std::string_view text) {
  std::array<char, 256> memory;
  base::FixedText line(memory);
  line.Add(text);
  WriteLine(line);
}

void WriteStack() {
  base::StackTrace stack;
  base::ReadOwnStack(stack);
  WriteText("nereid: its stack, which begins with the frames of this report:");
  for (const void* const frame : stack.frames()) {
    std::array<char, base::kFrameTextSize> text;
    std::array<char, base::kFrameTextSize + 8> memory;
    base::FixedText line(memory);
    line.Add("    ");
    line.Add({text.data(), base::DescribeFrame(frame, text)});
    WriteLine(line);
  }
}

void Report(int signal, const siginfo_t& info) {
  WriteHead(signal, info);
  if (!WriteExecutions(/*is_here=*/true, "nereid: it was ")) {
    WriteText("nereid: that thread was executing no model");
  }
  // A crash of a thread that a library has made belongs to one of these.
  WriteExecutions(/*is_here=*/false, "nereid: another thread is ");
  WriteStack();
}

void OnCrash(int signal, siginfo_t* info, void* /*context*/) {
  pid_t nobody = 0;
  if (reporting_thread.compare_exchange_strong(nobody, CallingThread())) {
    // Ends the process if the report hangs.
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(kMaxSeconds);
    Report(signal, *info);
    ::alarm(0);
  } else if (nobody != CallingThread()) {
    // The thread that has crashed first ends the process.
    for (;;) ::pause();
  }
  ::signal(signal, SIG_DFL);
  // A fault happens again when the handler returns; anything else has to be sent once more.
  if (info->si_code <= 0) ::syscall(SYS_tgkill, ::getpid(), CallingThread(), signal);
}

// Lets the handler run when the main thread's own stack is used up, as base::Thread does for
// others.
void AddSignalStack() {
  stack_t present{};
  if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  static std::array<char, size_t{64} << 10> memory;
  const stack_t stack{.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  ::sigaltstack(&stack, nullptr);
}

}  // namespace

void InstallCrashReport() {
  base::PrepareStackTraces();
  reader = new base::MemoryReader;
  AddSignalStack();
  for (const Crash& crash : kCrashes) {
    struct sigaction action{};
    ::sigaction(crash.signal, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_sigaction = OnCrash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(crash.signal, &action, nullptr);
  }
}

}  // namespace nereid::app
