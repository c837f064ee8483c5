// SPDX-License-Identifier: Apache-2.0
// Looks at processes while they have requests, for what nothing else would notice: requests that
// clients cancel, that take too long, and memory beyond the limit. Used by isolated models, too.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "backend_kit/mutex.h"

namespace nereid::python {

// What is looked at.
class Watched {
 public:
  virtual ~Watched() = default;
  // Looks, and returns whether it should be looked at again soon.
  virtual bool Look() = 0;
  // Whether it must be looked at even if it has no requests, though less often.
  virtual bool needs_looks() const = 0;
};

// Has a thread that looks in short intervals, as long as there is anything to look at. Without
// anything to watch it has none. Thread-safe.
class Watch {
 public:
  Watch() = default;
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void Add(std::weak_ptr<Watched> watched);
  // Called when there is a request to look at; costs nothing while the thread is at it.
  void Wake() {
    if (is_resting_.load()) WakeThread();
  }

 private:
  void Run();
  void WakeThread();
  // Returns whether to look again soon.
  bool LookAtAll(const std::vector<std::shared_ptr<Watched>>& all);
  std::vector<std::shared_ptr<Watched>> Living() NEREID_KIT_REQUIRES(mutex_);

  backend::Mutex mutex_;
  backend::CondVar changed_;
  bool is_stopping_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Watched>> watched_ NEREID_KIT_GUARDED_BY(mutex_);
  std::atomic<bool> is_resting_{false};
  std::thread thread_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
