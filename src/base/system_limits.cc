// SPDX-License-Identifier: Apache-2.0
#include "base/system_limits.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/control_group.h"

namespace nereid::base {
namespace {

// What the process may still map. Its libraries and stacks count as well, but are never returned.
uint64_t AddressSpaceLeft(const SystemFiles& files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string sizes = files.Text("/proc/self/statm").value_or("0");
  const uint64_t mapped = ToNumber(Words(sizes).front()).value_or(0) * page;
  return limit.rlim_cur - std::min<uint64_t>(mapped, limit.rlim_cur);
}

uint64_t MachineMemory() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return UINT64_MAX;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
}

unsigned CpusInMask() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

}  // namespace

SystemLimits ReadSystemLimits(const SystemFiles& files) {
  SystemLimits limits;
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && descriptors.rlim_cur != RLIM_INFINITY) {
    limits.descriptors = descriptors.rlim_cur;
  }
  limits.memory_bytes = MachineMemory();
  const ControlGroupLimits group = ReadControlGroups(files);
  if (group.memory_bytes && *group.memory_bytes < limits.memory_bytes) {
    limits.memory_bytes = *group.memory_bytes;
    limits.memory_source = "the cgroup";
  }
  if (const uint64_t bytes = AddressSpaceLeft(files); bytes < limits.memory_bytes) {
    limits.memory_bytes = bytes;
    limits.memory_source = "ulimit -v";
  }
  const unsigned cpus = CpusInMask();
  const double quota = std::ceil(group.cpus.value_or(cpus));
  limits.cpus = quota < cpus ? std::max(static_cast<unsigned>(quota), 1u) : cpus;
  return limits;
}

unsigned AvailableCpus() {
  static const unsigned cpus = ReadSystemLimits().cpus;
  return cpus;
}

}  // namespace nereid::base
