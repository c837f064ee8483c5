// SPDX-License-Identifier: Apache-2.0
// The flags of what executes models: backends, devices, the response cache, repository agents.
#pragma once

#include <span>

#include "app/flags.h"

namespace nereid::app {

std::span<const Flag> BackendFlags();

}  // namespace nereid::app
