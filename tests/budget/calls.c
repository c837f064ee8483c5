// SPDX-License-Identifier: Apache-2.0
// Counts the system calls of another process by number, until it is stopped: calls PID FILE. FILE
// is an array of 1024 64-bit counters, which test_budget.py reads while this runs. Writes "ready"
// to standard output once it traces every thread. Needs no privileges if the process permits being
// traced, as count.c does.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

enum { kNumbers = 1024 };

static volatile sig_atomic_t is_stopping;
static void stop(int signal) {
  (void)signal;
  is_stopping = 1;
}

static int fail(const char* what) {
  perror(what);
  return 1;
}

static pid_t threads[kNumbers];
static size_t thread_count;

static int is_followed(pid_t thread) {
  for (size_t i = 0; i < thread_count; ++i) {
    if (threads[i] == thread) return 1;
  }
  return 0;
}

static int follow(pid_t thread) {
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
  if (is_followed(thread) || thread_count == kNumbers) return 0;
  if (ptrace(PTRACE_SEIZE, thread, NULL, options) != 0) return errno == ESRCH ? 0 : -1;
  threads[thread_count++] = thread;
  ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
  return 1;
}

// Traces the threads that are not traced yet; returns their number, or -1.
static int follow_all(const char* pid) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%s/task", pid);
  DIR* tasks = opendir(path);
  if (tasks == NULL) return -1;
  int found = 0;
  for (struct dirent* entry; found >= 0 && (entry = readdir(tasks)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    const int followed = follow(atoi(entry->d_name));
    found = followed < 0 ? -1 : found + followed;
  }
  closedir(tasks);
  return found;
}

// Determines why `thread` has stopped, counts, and continues it.
static void serve(pid_t thread, int status, uint64_t* counters) {
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  int delivered = 0;
  if (signal == (SIGTRAP | 0x80)) {
    struct ptrace_syscall_info info;
    const long size = ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info);
    if (size > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr < kNumbers) {
      __atomic_fetch_add(&counters[info.entry.nr], 1, __ATOMIC_RELAXED);
    }
  } else if (event == 0) {
    delivered = signal;
  }
  ptrace(PTRACE_SYSCALL, thread, NULL, delivered);
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: calls PID FILE\n"), 2;
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = stop;  // without SA_RESTART, so that it interrupts waitpid
  sigaction(SIGTERM, &action, NULL);

  const int file = open(argv[2], O_RDWR);
  if (file < 0) return fail(argv[2]);
  uint64_t* counters =
      mmap(NULL, kNumbers * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (counters == MAP_FAILED) return fail("mmap");
  for (int found = 1; found > 0;) {
    found = follow_all(argv[1]);
    if (found < 0) return fail("ptrace");
  }
  puts("ready");
  fflush(stdout);
  while (!is_stopping) {
    int status = 0;
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) break;  // no thread is left
    if (WIFSTOPPED(status)) serve(thread, status, counters);
  }
  // The kernel continues the threads when their tracer ends.
  return 0;
}
