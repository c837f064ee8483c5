// SPDX-License-Identifier: Apache-2.0
// Folders that must not outlive the process, not even where it ends without destructors: whoever
// made one says so, and std::quick_exit removes what is left of them. Besides the log the only
// state that belongs to the process: it is asked when nothing else can be trusted any more.
#pragma once

#include <string>

namespace nereid::base {

// Thread-safe. Removes nothing itself: that is its owner's, before this goes.
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
