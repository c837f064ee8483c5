// SPDX-License-Identifier: Apache-2.0
// The first run of a compiled model, at which its library reads the environment.
#pragma once

#include <optional>

#include "backend_kit/mutex.h"

namespace nereid::pytorch {

// Whether the library of a model checks its inputs is a variable of the environment, which it reads
// at its first run. Its checks refuse batches of one row, so they are off where ours do the same.
class FirstRun {
 public:
  FirstRun();

  // Calls `run` while the variable is as this model needs it.
  template <typename Run>
  auto With(bool library_checks, Run&& run) {
    const backend::MutexLock lock(mutex_);
    Set(library_checks);
    return run();
  }

 private:
  // Changes the variable only where it has another value, because other threads may read the
  // environment meanwhile.
  void Set(bool library_checks) NEREID_KIT_REQUIRES(mutex_);

  backend::Mutex mutex_;
  std::optional<bool> is_set_ NEREID_KIT_GUARDED_BY(mutex_);
  const bool is_users_;  // set by the user, whose choice counts
};

// That of this process, whose environment there is once.
FirstRun& SharedFirstRun();

}  // namespace nereid::pytorch
