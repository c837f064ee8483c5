// SPDX-License-Identifier: Apache-2.0
// Clocks and settings of the kernel.
#include <sys/timex.h>

#include <chrono>

#include <fmt/format.h>

#include "doctor/machine.h"

namespace nereid::doctor {
namespace {

constexpr const char* kClockSource =
    "/sys/devices/system/clocksource/clocksource0/current_clocksource";

void ExamineClockSource(const base::SystemFiles& files, Report& report) {
  const auto source = files.Text(kClockSource);
  if (!source) {
    report.Ok("clocks.monotonic", "the kernel does not tell its clock source");
    return;
  }
  // The clocks of the processor and of hypervisors are read without a system call.
  if (*source != "hpet" && *source != "acpi_pm" && *source != "jiffies" && *source != "xen") {
    report.Ok("clocks.monotonic", fmt::format("clock source {}", *source));
    return;
  }
  report.Note("clocks.monotonic", fmt::format("clock source {}", *source),
              "Each reading of the time is a system call, of which a request needs several: boot "
              "with tsc if the processor's is reliable.");
}

void ExamineSystemClock(Report& report) {
  // Before this, nothing of this server existed; a machine without a battery starts in 1970.
  constexpr std::chrono::sys_days kSensible{std::chrono::year{2024} / 1 / 1};
  if (std::chrono::system_clock::now() < kSensible) {
    report.Problem("clocks.system", "the system clock stands before 2024",
                   "Certificates and signatures for object stores are refused: set the clock.");
    return;
  }
  timex state{};
  if (::adjtimex(&state) != TIME_ERROR) {
    report.Ok("clocks.system", "the system clock is synchronised");
    return;
  }
  report.Note("clocks.system", "the kernel does not know the system clock as synchronised",
              "Without NTP (in a container or virtual machine it may be the host's business), "
              "traces do not line up with those of other machines, and object stores refuse "
              "signatures that are minutes off.");
}

void ExamineHugePages(const base::SystemFiles& files, Report& report) {
  const auto choices = files.Text("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!choices) {
    report.Ok("kernel.huge_pages", "no transparent huge pages");
    return;
  }
  const size_t begin = choices->find('[');
  const std::string chosen = choices->substr(begin + 1, choices->find(']', begin) - begin - 1);
  if (chosen != "always") {
    report.Ok("kernel.huge_pages", fmt::format("transparent huge pages: {}", chosen));
    return;
  }
  report.Note("kernel.huge_pages", "transparent huge pages: always",
              "Memory that models give back may stay in use: 'madvise' gives them to programs that "
              "ask (/sys/kernel/mm/transparent_hugepage/enabled).");
}

// A setting that is a number, with the least value that servers are content with.
struct Minimum {
  const char* id;
  const char* path;
  uint64_t value;
  const char* advice;
};

constexpr Minimum kMinimums[] = {
    {"kernel.connections", "/proc/sys/net/core/somaxconn", 1024,
     "More connections that arrive at once are refused: sysctl net.core.somaxconn=4096"},
    {"kernel.mappings", "/proc/sys/vm/max_map_count", 65'530,
     "Processes with many models may get no more memory: sysctl vm.max_map_count=262144"},
};

}  // namespace

void ExamineClocks(const base::SystemFiles& files, Report& report) {
  ExamineClockSource(files, report);
  ExamineSystemClock(report);
}

void ExamineKernel(const base::SystemFiles& files, Report& report) {
  ExamineHugePages(files, report);
  constexpr uint64_t kNeverOvercommits = 2;
  if (const auto mode = files.Number("/proc/sys/vm/overcommit_memory")) {
    if (*mode == kNeverOvercommits) {
      report.Note("kernel.overcommit", "memory is never overcommitted (vm.overcommit_memory = 2)",
                  "Frameworks reserve far more than they use, and then fail: 0 is usual.");
    } else {
      report.Ok("kernel.overcommit", fmt::format("vm.overcommit_memory = {}", *mode));
    }
  }
  for (const Minimum& setting : kMinimums) {
    const auto value = files.Number(setting.path);
    if (!value) continue;
    const std::string text =
        fmt::format("{} = {}", std::string_view(setting.path).substr(sizeof "/proc/sys"), *value);
    if (*value < setting.value) {
      report.Note(setting.id, text, setting.advice);
    } else {
      report.Ok(setting.id, text);
    }
  }
}

}  // namespace nereid::doctor
