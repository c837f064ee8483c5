// SPDX-License-Identifier: Apache-2.0
// Folders that must not outlive the process, even if it ends without running destructors: the owner
// of a folder registers it here, and std::quick_exit removes what is left of it. The list belongs
// to the process, because it is needed when nothing else can be relied on.
#pragma once

#include <string>

namespace nereid::base {

// Registers a folder while this object lives. Thread-safe. The owner removes the folder before it
// destroys this object, which itself removes nothing.
class QuickExitFolder {
 public:
  explicit QuickExitFolder(std::string path);
  ~QuickExitFolder();
  QuickExitFolder(const QuickExitFolder&) = delete;
  QuickExitFolder& operator=(const QuickExitFolder&) = delete;

 private:
  const std::string path_;
};

}  // namespace nereid::base
