// SPDX-License-Identifier: Apache-2.0
// Takes system calls away that no model needs and that reach beyond the process (seccomp).
#pragma once

#include "base/status.h"

namespace nereid::isolation {

struct SystemCallFilter {
  bool may_use_network = false;
  // Whether signals may be sent to this process only. Landlock does that better where it can: it
  // knows the process's children.
  bool confines_signals = false;
};

// Filters the system calls of all threads of this process, and of all that it starts. Calls that
// are taken away fail with EPERM. REQUIRES: PR_SET_NO_NEW_PRIVS is set.
base::Status FilterSystemCalls(const SystemCallFilter& filter);

}  // namespace nereid::isolation
