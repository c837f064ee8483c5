// SPDX-License-Identifier: Apache-2.0
// Folders for files that live no longer than this process. A process that is killed leaves its
// folders behind. Each folder is locked as long as its process lives, however that ends, so that
// the next server can tell which are abandoned. (backends/python makes such folders, too, by the
// same name and lock.)
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/quick_exit.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace nereid::base {

// The prefix of their names, below the system's folder for temporary files.
inline constexpr std::string_view kTemporaryPrefix = "nereid-tmp-";

// A folder that its owner removes. If the process ends first, std::quick_exit removes it, or the
// next server, which finds it without a lock.
struct TemporaryFolder {
  std::string path;
  UniqueFd lock;
  std::unique_ptr<QuickExitFolder> at_quick_exit;
};

// Makes an empty folder that only this user can enter. Its name contains `purpose`.
Result<TemporaryFolder> MakeTemporaryFolder(std::string_view purpose);

// Removes the folders of this user whose processes are gone, and returns how many there were.
size_t RemoveAbandonedFolders();

// Replaces `folder` by `name` in `text` if it is a temporary folder or lies in one: clients need
// not know where their files were put. Other folders are left in the text.
std::string HideTemporaryFolder(std::string text, std::string_view folder, std::string_view name);

}  // namespace nereid::base
