// SPDX-License-Identifier: Apache-2.0
#include "base/thread_use.h"

#include <sys/resource.h>
#include <time.h>

namespace nereid::base {

ThreadUse ThreadUse::Now() {
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return {.cpu_ns = static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000 +
                    static_cast<uint64_t>(cpu.tv_nsec),
          .waits = static_cast<uint64_t>(usage.ru_nvcsw)};
}

}  // namespace nereid::base
