// SPDX-License-Identifier: Apache-2.0
// For whoever rotates logs. Apart from the log itself, which everything includes.
#pragma once

#include "base/status.h"

namespace nereid::base {

// Opens the file of the log anew, by its name: the old one has been moved away. An error when that
// cannot be; the old one is written on. Nothing where there is no file.
Status ReopenLog();

}  // namespace nereid::base
