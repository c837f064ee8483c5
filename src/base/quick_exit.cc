// SPDX-License-Identifier: Apache-2.0
#include "base/quick_exit.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/mutex.h"

namespace nereid::base {
namespace {

// The registered folders.
struct Folders {
  Mutex mutex;
  std::multiset<std::string> paths NEREID_GUARDED_BY(mutex);
};

// Leaked on purpose: threads may use it until the process ends.
Folders& AllFolders();

void RemoveAll() {
  Folders& folders = AllFolders();
  MutexLock lock(folders.mutex);
  for (const std::string& path : folders.paths) {
    std::error_code ignored;
    // Other threads still run and may be writing into the folder; the second pass removes what they
    // add during the first.
    for (int i = 0; i < 2; ++i) std::filesystem::remove_all(path, ignored);
  }
}

Folders& AllFolders() {
  static Folders* const folders = [] {
    static_cast<void>(std::at_quick_exit(RemoveAll));
    return new Folders;
  }();
  return *folders;
}

}  // namespace

QuickExitFolder::QuickExitFolder(std::string path) : path_(std::move(path)) {
  Folders& folders = AllFolders();
  MutexLock lock(folders.mutex);
  folders.paths.insert(path_);
}

QuickExitFolder::~QuickExitFolder() {
  Folders& folders = AllFolders();
  MutexLock lock(folders.mutex);
  folders.paths.erase(folders.paths.find(path_));
}

}  // namespace nereid::base
