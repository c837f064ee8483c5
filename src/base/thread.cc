// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace nereid::base {
namespace {

// Returns the CPUs granted by the cgroup (version 2: "max 100000" or "200000 100000"), or 0 if
// there is no limit.
unsigned CgroupCpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  try {
    return static_cast<unsigned>(std::ceil(std::stod(quota) / period));
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

Thread::Thread(const std::string& name, std::function<void()> body)
    : thread_([name = name.substr(0, 15), body = std::move(body)] {
        pthread_setname_np(pthread_self(), name.c_str());
        body();
      }) {}

void Thread::Join() {
  if (thread_.joinable()) thread_.join();
}

unsigned AvailableCpus() {
  cpu_set_t set;
  unsigned count = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    count = static_cast<unsigned>(CPU_COUNT(&set));
  }
  if (const unsigned quota = CgroupCpus(); quota > 0) count = std::min(count, quota);
  return std::max(count, 1u);
}

}  // namespace nereid::base
