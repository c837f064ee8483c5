// SPDX-License-Identifier: Apache-2.0
// A wait for time to pass. Nothing can end it early, so it belongs only where there is no condition
// to wait for; tools/check_includes.py lists these places with their reasons.
#pragma once

#include <chrono>

namespace nereid::base {

// Returns after `duration`, or at once if that is not positive.
void SleepFor(std::chrono::nanoseconds duration);

}  // namespace nereid::base
