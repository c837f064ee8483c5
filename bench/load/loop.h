// SPDX-License-Identifier: Apache-2.0
// The measurement that the loops of frameworks (torch_loop and its kin) share: what a run of a
// model costs without a server.
#pragma once

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "load/options.h"

namespace nereid::bench {

// The processor time of all threads of this process, also of those that a library has started.
inline double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Calls `run` until libraries have finished preparing themselves, then for --seconds=2. Prints one
// JSON object: how many runs were measured, and the processor time of each in microseconds.
//
// With --pause-us=N the thread sleeps between runs, as that of a server does between requests:
// waking up costs, and so do caches that a resting core has lost.
template <typename Run>
void MeasureLoop(const Options& options, Run&& run) {
  constexpr int kWarmUps = 200;
  for (int i = 0; i < kWarmUps; ++i) run();
  const std::chrono::duration<double, std::micro> pause(options.Number("pause-us", 0));
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(options.Number("seconds", 2));
  const double start = CpuSeconds();
  int runs = 0;
  for (; Clock::now() < end; ++runs) {
    run();
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
  std::printf("{\"runs\": %d, \"cpu_us\": %.2f}\n", runs, (CpuSeconds() - start) * 1e6 / runs);
}

}  // namespace nereid::bench
