// SPDX-License-Identifier: Apache-2.0
#include "base/allocator.h"

#include <dlfcn.h>
#include <malloc.h>

#include <chrono>

#include "base/log.h"

namespace nereid::base {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

// jemalloc's function for everything, if the process has it; its manual: "arena.<i>.purge", where
// 4096 stands for all arenas, and "background_thread".
using MallCtl = int (*)(const char* name, void* old, size_t* old_size, void* value, size_t size);
constexpr const char* kPurgeAll = "arena.4096.purge";
constexpr const char* kBackgroundThread = "background_thread";

constexpr std::chrono::seconds kPeriod{1};
constexpr std::chrono::seconds kLeastStep{1};

MallCtl FindMallCtl() { return reinterpret_cast<MallCtl>(::dlsym(RTLD_DEFAULT, "mallctl")); }

void RestartBackgroundThreads() {
  const MallCtl control = FindMallCtl();
  if (control == nullptr) return;
  bool is_on = false;
  size_t size = sizeof is_on;
  if (control(kBackgroundThread, &is_on, &size, nullptr, 0) != 0 || !is_on) return;
  for (bool on : {false, true}) {
    const int error = control(kBackgroundThread, nullptr, nullptr, &on, sizeof on);
    if (error == 0) continue;
    NEREID_LOG(
        kWarning,
        "the allocator's threads could not be started anew (error {}): free memory may stay with "
        "the server",
        error);
    return;
  }
}

}  // namespace

void ReturnFreeMemory() {
  if (const MallCtl control = FindMallCtl()) {
    static_cast<void>(control(kPurgeAll, nullptr, nullptr, nullptr, 0));
  }
  ::malloc_trim(0);
}

std::optional<nanoseconds> ClockSteps::Look(nanoseconds time_of_day, nanoseconds monotonic) {
  const nanoseconds distance = time_of_day - monotonic;
  const nanoseconds step = distance - distance_.value_or(distance);
  // A clock that is only corrected moves by little with each look.
  distance_ = distance;
  if (step > -kLeastStep && step < kLeastStep) return std::nullopt;
  return step;
}

AllocatorUpkeep::AllocatorUpkeep() : thread_("allocator", kPeriod, [this] { Look(); }) {}

void AllocatorUpkeep::Look() {
  const auto step =
      steps_.Look(system_clock::now().time_since_epoch(), steady_clock::now().time_since_epoch());
  if (!step) return;
  NEREID_LOG(kInfo, "the time of day was moved by {:+.1f} s",
             std::chrono::duration<double>(*step).count());
  RestartBackgroundThreads();
}

}  // namespace nereid::base
