// SPDX-License-Identifier: Apache-2.0
#include "python_backend/vitals.h"

#include "backend_kit/error.h"
#include "python_backend/wait.h"

namespace nereid::python {

std::string Vitals::label() const {
  const backend::MutexLock lock(mutex_);
  return backend::StrCat(what_, " '", name_, "'");
}

void Vitals::Rename(std::string name) {
  const backend::MutexLock lock(mutex_);
  name_.swap(name);
}

void Vitals::WakeAll() {
  // The worker may have overwritten the flags that say which threads sleep, so they are ignored.
  Word somebody{1};
  for (Word* word : {&control_.done.word, &control_.reply.word, &control_.ring_bell}) {
    Signal(*word, somebody);
  }
}

void Vitals::Condemn(const std::string& why) {
  {
    const backend::MutexLock lock(mutex_);
    if (has_exited_ || !why_.empty()) return;
    why_ = why;
    is_dead_.store(true, std::memory_order_release);
  }
  kill_();
  WakeAll();
}

void Vitals::NoteExit(std::string how) {
  {
    const backend::MutexLock lock(mutex_);
    has_exited_ = true;
    if (why_.empty()) why_ = std::move(how);
    is_dead_.store(true, std::memory_order_release);
  }
  WakeAll();
  const backend::MutexLock lock(mutex_);
  exited_.NotifyAll();
}

bool Vitals::WaitForExit(Clock::time_point deadline) {
  const backend::MutexLock lock(mutex_);
  while (!has_exited_ && exited_.WaitUntil(mutex_, deadline)) {
  }
  return has_exited_;
}

void Vitals::WaitForExit() {
  const backend::MutexLock lock(mutex_);
  while (!has_exited_) exited_.Wait(mutex_);
}

std::string Vitals::DeathMessage() const {
  const backend::MutexLock lock(mutex_);
  return backend::StrCat(what_, " '", name_, "' is not healthy: ", why_);
}

}  // namespace nereid::python
