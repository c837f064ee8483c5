// SPDX-License-Identifier: Apache-2.0
#include "base/stack_trace.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "base/fixed_text.h"
#include "base/mutex.h"

namespace nereid::base {
namespace {

// -- Reading the stack of another thread. --

constexpr pid_t kNobody = 0;
constexpr pid_t kIsReading = -1;
constexpr pid_t kHasRead = -2;

// One stack is read at a time. A signal handler has access to globals only.
struct Reading {
  std::atomic<pid_t> state{kNobody};  // the thread that shall read its stack, or a state above
  StackTrace stack;                   // written by that thread
  sem_t done;
};
Reading reading;
Mutex reading_mutex;
int reading_signal = 0;  // 0: none is free; constant after PrepareStackTraces

void OnReadStack(int) {
  const int kept_errno = errno;
  // The signal may come late, when nobody waits for this thread any more.
  pid_t self = static_cast<pid_t>(::syscall(SYS_gettid));
  if (reading.state.compare_exchange_strong(self, kIsReading)) {
    ReadOwnStack(reading.stack);
    reading.state.store(kHasRead);
    ::sem_post(&reading.done);
  }
  errno = kept_errno;
}

// Returns a signal that nothing in the process uses, and takes it; 0 if there is none.
int TakeSignal() {
  // The first real-time signals are those that other software takes first.
  for (int number = SIGRTMIN + 8; number <= SIGRTMAX; ++number) {
    struct sigaction action{};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = OnReadStack;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (::sigaction(number, &action, nullptr) == 0) return number;
  }
  return 0;
}

bool WaitForRead(time_t seconds) {
  timespec end{};
  ::clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += seconds;
  while (::sem_timedwait(&reading.done, &end) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// -- Naming addresses. --

// The tables of a library that its dynamic section names.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* hash = nullptr;
};

Tables TablesOf(const link_map& library) {
  Tables tables;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    // The loader has made addresses of offsets, except in a library that it cannot write to.
    const uintptr_t address =
        entry->d_un.d_ptr < library.l_addr ? library.l_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
    const void* const table = reinterpret_cast<const void*>(address);
    if (entry->d_tag == DT_SYMTAB) tables.symbols = static_cast<const ElfW(Sym)*>(table);
    if (entry->d_tag == DT_STRTAB) tables.names = static_cast<const char*>(table);
    if (entry->d_tag == DT_GNU_HASH) tables.hash = static_cast<const uint32_t*>(table);
  }
  return tables;
}

// Returns the exported function that contains `offset`, an address in the library; null if there is
// none. dladdr would take the lock of the dynamic loader, which the thread in question may hold.
const ElfW(Sym) * FindFunction(const Tables& tables, uintptr_t offset) {
  if (tables.symbols == nullptr || tables.names == nullptr || tables.hash == nullptr) {
    return nullptr;
  }
  const uint32_t bucket_count = tables.hash[0];
  const uint32_t first_symbol = tables.hash[1];
  const uint32_t bloom_words = tables.hash[2];
  const uint32_t* const buckets =
      tables.hash + 4 + static_cast<size_t>(bloom_words) * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* const chains = buckets + bucket_count;
  for (uint32_t b = 0; b < bucket_count; ++b) {
    if (buckets[b] < first_symbol) continue;
    for (uint32_t i = buckets[b];; ++i) {
      const ElfW(Sym)& symbol = tables.symbols[i];
      const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != 0;
      if (is_function && offset - symbol.st_value < symbol.st_size) return &symbol;
      if ((chains[i - first_symbol] & 1) != 0) break;
    }
  }
  return nullptr;
}

}  // namespace

void PrepareStackTraces() {
  static const bool is_prepared = [] {
    void* frame = nullptr;
    ::backtrace(&frame, 1);  // loads the library that unwinds
    ::sem_init(&reading.done, /*pshared=*/0, 0);
    reading_signal = TakeSignal();
    return true;
  }();
  static_cast<void>(is_prepared);
}

[[gnu::noinline]] void ReadOwnStack(StackTrace& stack) {
  const int count = ::backtrace(stack.addresses.data(), static_cast<int>(StackTrace::kMaxFrames));
  stack.size = static_cast<size_t>(std::max(count, 0));
}

StackTrace ReadStackOf(pid_t thread) {
  MutexLock lock(reading_mutex);
  StackTrace stack;
  // Not at rest if a thread was interrupted for ever while it read its stack.
  pid_t expected = kNobody;
  if (reading_signal == 0 || !reading.state.compare_exchange_strong(expected, thread)) return stack;
  if (::syscall(SYS_tgkill, ::getpid(), thread, reading_signal) != 0 || !WaitForRead(1)) {
    expected = thread;
    if (reading.state.compare_exchange_strong(expected, kNobody) || !WaitForRead(1)) return stack;
  }
  // The innermost frames are those of the signal handler.
  constexpr size_t kHandlerFrames = 3;
  const std::span<void* const> frames = reading.stack.frames();
  const std::span<void* const> own = frames.subspan(std::min(kHandlerFrames, frames.size()));
  std::ranges::copy(own, stack.addresses.begin());
  stack.size = own.size();
  reading.state.store(kNobody);
  return stack;
}

size_t DescribeFrame(const void* address, std::span<char, kFrameTextSize> memory) {
  FixedText text(memory);
  const auto place = reinterpret_cast<uintptr_t>(address);
  dl_find_object found{};
  // A call that never returns may be the last instruction of its function.
  if (place == 0 || ::_dl_find_object(reinterpret_cast<void*>(place - 1), &found) != 0) {
    text.AddHex(place);
    return text.size();
  }
  const link_map& library = *found.dlfo_link_map;
  const std::string_view path = library.l_name;
  text.Add(path.empty() ? std::string_view(program_invocation_short_name)
                        : path.substr(path.rfind('/') + 1));
  const uintptr_t offset = place - library.l_addr;
  text.Add("+");
  text.AddHex(offset);
  const Tables tables = TablesOf(library);
  if (const ElfW(Sym)* const function = FindFunction(tables, offset - 1); function != nullptr) {
    text.Add(" (");
    text.Add(tables.names + function->st_name);
    text.Add("+");
    text.AddHex(offset - function->st_value);
    text.Add(")");
  }
  return text.size();
}

std::vector<std::string> DescribeStack(const StackTrace& stack) {
  std::vector<std::string> lines;
  for (const void* const frame : stack.frames()) {
    std::array<char, kFrameTextSize> text;
    lines.emplace_back(text.data(), DescribeFrame(frame, text));
  }
  return lines;
}

}  // namespace nereid::base
