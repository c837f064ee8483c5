// SPDX-License-Identifier: Apache-2.0
#include "base/sleep.h"

#include <thread>

namespace nereid::base {

void SleepFor(std::chrono::nanoseconds duration) { std::this_thread::sleep_for(duration); }

}  // namespace nereid::base
