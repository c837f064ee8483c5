// SPDX-License-Identifier: Apache-2.0
// How programs run what check.py counts: each case for warm-up first, then inside MeasuredRuns,
// where callgrind collects.
#pragma once

#include <cstdio>
#include <functional>

// Enough for every scheduler to have measured that its model is quick.
inline constexpr int kWarmUp = 200;
inline constexpr int kRuns = 100;

// check.py refers to this function by its name.
extern "C" [[gnu::noinline]] inline void MeasuredRuns(const std::function<void()>& run) {
  for (int i = 0; i < kRuns; ++i) run();
}

inline void Measure(const char* name, const std::function<void()>& run) {
  for (int i = 0; i < kWarmUp; ++i) run();
  std::printf("%s\n", name);
  MeasuredRuns(run);
}
