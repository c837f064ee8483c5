// SPDX-License-Identifier: Apache-2.0
// A wait for time to pass, and for nothing else. Nothing can end it early, so it belongs where no
// condition could be waited for; tools/check_includes.py lists these places with their reasons.
#pragma once

#include <chrono>

namespace nereid::base {

// Returns when this much time has passed; at once if it is not positive.
void SleepFor(std::chrono::nanoseconds duration);

}  // namespace nereid::base
