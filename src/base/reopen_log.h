// SPDX-License-Identifier: Apache-2.0
// Support for log rotation. Separate from log.h, which nearly every file includes.
#pragma once

#include "base/status.h"

namespace nereid::base {

// Reopens the log file by its name, after the old one was moved away. On an error the old file
// remains in use. Does nothing when there is no log file.
Status ReopenLog();

}  // namespace nereid::base
