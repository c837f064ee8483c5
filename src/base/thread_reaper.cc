// SPDX-License-Identifier: Apache-2.0
#include "base/thread_reaper.h"

#include <utility>

namespace nereid::base {

void ThreadReaper::Leave(Thread self) {
  MutexLock lock(mutex_);
  last_.Join();
  last_ = std::move(self);
}

void ThreadReaper::WaitForLeft() {
  MutexLock lock(mutex_);
  last_.Join();
}

}  // namespace nereid::base
