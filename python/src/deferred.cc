// SPDX-License-Identifier: Apache-2.0
#include "deferred.h"

#include <atomic>
#include <utility>

#include "backend_kit/mutex.h"

namespace nereid::python {
namespace {

// One for the process, like Python's main thread. Never destroyed, because server threads may use
// it until the process ends.
struct Deferred {
  backend::Mutex mutex;
  Owned references NEREID_KIT_GUARDED_BY(mutex);
  std::atomic<bool> is_empty{true};
};

Deferred& deferred() {
  static auto* const one = new Deferred;
  return *one;
}

int OnMainThread(void* /*unused*/) {
  LetGoOfDeferred();
  return 0;
}

}  // namespace

void LetGo(Owned& references) {
  // The list is emptied first, because a destructor may call this again.
  for (PyObject* const reference : std::exchange(references, {})) Py_DECREF(reference);
}

void LetGoLater(Owned&& references) {
  if (references.empty()) return;
  bool was_empty = false;
  {
    const backend::MutexLock lock(deferred().mutex);
    was_empty = deferred().references.empty();
    deferred().references.insert(deferred().references.end(), references.begin(), references.end());
    deferred().is_empty.store(false);
  }
  references.clear();
  // If the queue of pending calls is full, the next request releases the references.
  if (was_empty && Py_IsInitialized()) static_cast<void>(Py_AddPendingCall(OnMainThread, nullptr));
}

void LetGoOfDeferred() {
  if (deferred().is_empty.load()) [[likely]]
    return;
  Owned references;
  {
    const backend::MutexLock lock(deferred().mutex);
    references.swap(deferred().references);
    deferred().is_empty.store(true);
  }
  LetGo(references);
}

}  // namespace nereid::python
