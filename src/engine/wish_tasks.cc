// SPDX-License-Identifier: Apache-2.0
#include "engine/wish_tasks.h"

#include <utility>

#include "base/log.h"
#include "base/trim.h"

namespace nereid::engine {

void WishTasks::Add(const std::string& model, bool is_loaded) {
  bool is_busy = false;
  {
    base::MutexLock lock(mutex_);
    is_busy = !asked_.try_emplace(model).second;
    asked_[model] = is_loaded;
  }
  if (!is_busy) return actions_.run([this, model] { Work(model); });
  if (!is_loaded) actions_.cancel_load(model);
}

void WishTasks::WaitUntilIdle() {
  base::MutexLock lock(mutex_);
  while (!asked_.empty()) idle_.Wait(mutex_);
}

std::optional<bool> WishTasks::Next(const std::string& model) {
  base::MutexLock lock(mutex_);
  const auto found = asked_.find(model);
  std::optional<bool> next = std::exchange(found->second, std::nullopt);
  if (!next) {
    asked_.erase(found);
    idle_.NotifyAll();
  }
  return next;
}

void WishTasks::Work(const std::string& model) {
  while (const std::optional<bool> is_loaded = Next(model)) {
    const base::Status status = actions_.fulfil(model, *is_loaded);
    if (status.ok()) continue;
    // Triton's errors of loads end with a line end.
    NEREID_LOG(kError, "a generation file asks to {} model '{}', which failed: {}",
               *is_loaded ? "load" : "unload", model, base::Trim(status.message(), "\n"));
  }
}

}  // namespace nereid::engine
