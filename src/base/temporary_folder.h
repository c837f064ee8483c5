// SPDX-License-Identifier: Apache-2.0
// Folders for files that live no longer than this process. A process that is killed leaves its
// folders behind; each is locked as long as its process lives, on whatever terms that ends, so that
// the next server can tell what nobody uses any more. (backends/python makes such folders, too, by
// the same name and lock.)
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/quick_exit.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace nereid::base {

// What their names begin with, below the system's folder for temporary files.
inline constexpr std::string_view kTemporaryPrefix = "nereid-tmp-";

// A folder that its owner removes. Where the owner does not come to that, std::quick_exit does, or
// the next server, which finds it without a lock.
struct TemporaryFolder {
  std::string path;
  UniqueFd lock;
  std::unique_ptr<QuickExitFolder> at_quick_exit;
};

// Makes an empty one that only this user can enter; `purpose` is a part of its name.
Result<TemporaryFolder> MakeTemporaryFolder(std::string_view purpose);

// Removes the folders of this user whose processes are gone, and says how many there were.
size_t RemoveAbandonedFolders();

// `text` with `name` in the place of `folder`, which is a temporary one or lies in such a one:
// clients need not know where their files were put. Other folders stay as they are.
std::string HideTemporaryFolder(std::string text, std::string_view folder, std::string_view name);

}  // namespace nereid::base
