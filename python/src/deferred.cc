// SPDX-License-Identifier: Apache-2.0
#include "deferred.h"

#include <atomic>
#include <utility>

#include "backend_kit/mutex.h"

namespace nereid::python {
namespace {

// One for the process, as Python's main thread is; never destroyed, because server threads may come
// late.
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
  // Moved out first: a destructor may come back here.
  for (PyObject* const reference : std::exchange(references, {})) Py_DECREF(reference);
}

void LetGoLater(Owned&& references) {
  if (references.empty()) return;
  bool was_empty = false;
  {
    const backend::MutexLock lock(deferred().mutex);
    was_empty = deferred().references.empty();
    deferred().references.insert(deferred().references.end(), references.begin(), references.end());
    deferred().is_empty.store(false, std::memory_order_relaxed);
  }
  references.clear();
  // Where there is no room for the call, the next request looks after them.
  if (was_empty && Py_IsInitialized()) static_cast<void>(Py_AddPendingCall(OnMainThread, nullptr));
}

void LetGoOfDeferred() {
  if (deferred().is_empty.load(std::memory_order_relaxed)) [[likely]]
    return;
  Owned references;
  {
    const backend::MutexLock lock(deferred().mutex);
    references.swap(deferred().references);
    deferred().is_empty.store(true, std::memory_order_relaxed);
  }
  LetGo(references);
}

}  // namespace nereid::python
