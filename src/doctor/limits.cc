// SPDX-License-Identifier: Apache-2.0
// What limits a server: of this process, of its control groups, and shared memory.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/control_group.h"
#include "base/system_files.h"
#include "base/system_limits.h"
#include "doctor/machine.h"
#include "doctor/units.h"

namespace nereid::doctor {
namespace {

// With fewer descriptors a server soon serves only health requests: each connection needs one.
constexpr uint64_t kFewDescriptors = 1024;
constexpr uint64_t kManyDescriptors = 4096;
constexpr uint64_t kFewTasks = 256;
constexpr uint64_t kSmallSharedMemory = 64 * kMiB;  // what container engines give by default
constexpr uint64_t kLittleMemory = 256 * kMiB;
constexpr uint64_t kModestMemory = 1024 * kMiB;

std::string LimitText(uint64_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit);
}

rlimit LimitOf(__rlimit_resource resource) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(resource, &limit);
  return limit;
}

void ExamineTasks(const base::ControlGroupLimits& groups, Report& report) {
  const uint64_t tasks =
      std::min<uint64_t>(LimitOf(RLIMIT_NPROC).rlim_cur, groups.tasks.value_or(RLIM_INFINITY));
  if (tasks >= kFewTasks) {
    report.Ok("limits.tasks", fmt::format("{} threads and processes", LimitText(tasks)));
    return;
  }
  report.Note("limits.tasks", fmt::format("only {} threads and processes", tasks),
              "Frameworks start a thread for each core and Python models a process for each "
              "instance: raise 'ulimit -u', TasksMax= of the service or --pids-limit of the "
              "container.");
}

void ExamineSharedMemory(Report& report) {
  constexpr const char* kFolder = "/dev/shm";
  constexpr const char* kWhy =
      "Only clients that send tensors in system shared memory, and some Python libraries, need it: "
      "for containers, give --shm-size=1g, or the client's by --ipc.";
  struct statvfs info{};
  if (::statvfs(kFolder, &info) != 0) {
    report.Note("limits.shared_memory", "there is no /dev/shm", kWhy);
    return;
  }
  const uint64_t size = uint64_t{info.f_blocks} * info.f_frsize;
  const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  const std::string text =
      fmt::format("/dev/shm has {}, {} free", BytesText(size), BytesText(free));
  if (::access(kFolder, R_OK | W_OK | X_OK) != 0) {
    report.Note("limits.shared_memory", text + ", but may not be written to", kWhy);
  } else if (free <= kSmallSharedMemory) {
    report.Note("limits.shared_memory", text, kWhy);
  } else {
    report.Ok("limits.shared_memory", text);
  }
}

void ExamineMemory(const base::SystemFiles& files, const base::ControlGroupLimits& groups,
                   Report& report) {
  const auto field = [&](std::string_view name) {
    const std::string text = files.Field("/proc/meminfo", name).value_or("");  // "123 kB"
    return base::ToNumber(text.substr(0, text.find(' '))).value_or(0) * 1024;
  };
  uint64_t available = field("MemAvailable");
  std::string text =
      fmt::format("{} of memory, {} available", BytesText(field("MemTotal")), BytesText(available));
  if (groups.memory_bytes) {
    const uint64_t used = std::min(groups.memory_used_bytes, *groups.memory_bytes);
    available = std::min(available, *groups.memory_bytes - used);
    text += fmt::format("; the control group permits {}, of which {} are used",
                        BytesText(*groups.memory_bytes), BytesText(used));
  }
  constexpr const char* kAdvice =
      "A server that needs more is killed: raise the limit of the container (--memory) or service "
      "(MemoryMax=), end other programs, or load fewer models.";
  if (available < kLittleMemory) {
    report.Problem("limits.memory", text, kAdvice);
  } else if (available < kModestMemory) {
    report.Note("limits.memory", text, kAdvice);
  } else {
    report.Ok("limits.memory", text);
  }
}

void ExamineQuota(const base::ControlGroupLimits& groups, Report& report) {
  if (!groups.cpus) {
    report.Ok("limits.cpu", "no quota of processor time");
    return;
  }
  const std::string text =
      fmt::format("the control group permits {:.4g} cores' time", *groups.cpus);
  report.Note("limits.cpu", text,
              fmt::format("The server starts threads for {} of the cores. Frameworks may start one "
                          "for each core that they see, and then stand still for the rest of each "
                          "period: set their threads in configurations, such as "
                          "intra_op_thread_count of ONNX models, or bind the server to cores "
                          "(--cpuset-cpus, AllowedCPUs=) in place of a quota.",
                          base::AvailableCpus()));
}

}  // namespace

void JudgeDescriptors(uint64_t soft, uint64_t hard, Report& report) {
  const std::string text =
      fmt::format("{} open files (at most {})", LimitText(soft), LimitText(hard));
  constexpr const char* kAdvice =
      "Each connection needs one: raise it with 'ulimit -n 65536', LimitNOFILE= of the service, or "
      "--ulimit nofile=65536 of the container.";
  if (soft < kFewDescriptors) {
    report.Problem("limits.files", text, kAdvice);
  } else if (soft < kManyDescriptors) {
    report.Note("limits.files", text, kAdvice);
  } else {
    report.Ok("limits.files", text);
  }
}

void ExamineLimits(const base::SystemFiles& files, Report& report) {
  const base::ControlGroupLimits groups = base::ReadControlGroups(files);
  const rlimit descriptors = LimitOf(RLIMIT_NOFILE);
  JudgeDescriptors(descriptors.rlim_cur, descriptors.rlim_max, report);
  ExamineTasks(groups, report);
  const uint64_t locked = LimitOf(RLIMIT_MEMLOCK).rlim_cur;
  report.Ok("limits.locked_memory",
            fmt::format("{} of locked memory, which only libraries for fast networks need",
                        locked == RLIM_INFINITY ? "any amount" : BytesText(locked)));
  ExamineSharedMemory(report);
  ExamineMemory(files, groups, report);
  ExamineQuota(groups, report);
}

}  // namespace nereid::doctor
