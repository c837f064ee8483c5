// SPDX-License-Identifier: Apache-2.0
// The flags that limit what clients can make the server hold.
#pragma once

#include <span>

#include "app/flags.h"

namespace nereid::app {

std::span<const Flag> BudgetFlags();

}  // namespace nereid::app
