// SPDX-License-Identifier: Apache-2.0
// Landlock: rights of a process to files, TCP ports and other processes' signals, which it gives up
// for good.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace nereid::isolation {

// Files and folders, which must exist, with all that is below them. What is in neither list cannot
// be opened.
struct FileRights {
  std::vector<std::string> readable;
  std::vector<std::string> writable;
};

struct Landlock {
  std::optional<FileRights> files;  // without them, any file may be opened
  bool may_use_network = false;
};

// Which parts the kernel could do besides files.
struct LandlockResult {
  bool confines_signals = false;
};

// Confines the calling thread and all that it starts. REQUIRES: PR_SET_NO_NEW_PRIVS is set.
base::Result<LandlockResult> Restrict(const Landlock& wanted);

}  // namespace nereid::isolation
