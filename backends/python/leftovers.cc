// SPDX-License-Identifier: Apache-2.0
#include "python_backend/leftovers.h"

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "backend_kit/mutex.h"

namespace nereid::python {
namespace {

struct Leftovers {
  backend::Mutex mutex;
  std::set<std::string> folders NEREID_KIT_GUARDED_BY(mutex);
  std::set<pid_t> groups NEREID_KIT_GUARDED_BY(mutex);
};

Leftovers& All();

void Clear() {
  Leftovers& all = All();
  const backend::MutexLock lock(all.mutex);
  for (const pid_t leader : all.groups) kill(-leader, SIGKILL);
  for (const std::string& path : all.folders) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
}

// Leaked on purpose, because any thread may use it at the very end.
Leftovers& All() {
  static Leftovers* const all = [] {
    static_cast<void>(std::at_quick_exit(Clear));
    return new Leftovers;
  }();
  return *all;
}

}  // namespace

void NoteFolder(const std::string& path) {
  Leftovers& all = All();
  const backend::MutexLock lock(all.mutex);
  all.folders.insert(path);
}

void ForgetFolder(const std::string& path) {
  Leftovers& all = All();
  const backend::MutexLock lock(all.mutex);
  all.folders.erase(path);
}

void NoteGroup(pid_t leader) {
  Leftovers& all = All();
  const backend::MutexLock lock(all.mutex);
  all.groups.insert(leader);
}

void EndGroup(pid_t leader) {
  Leftovers& all = All();
  const backend::MutexLock lock(all.mutex);
  kill(-leader, SIGKILL);
  all.groups.erase(leader);
}

}  // namespace nereid::python
