// SPDX-License-Identifier: Apache-2.0
// A value that a lock of another object guards, as with the entries of a list whose lock belongs to
// the list. NEREID_GUARDED_BY cannot express this: clang does not know that the lock an entry
// refers to is the one that the list holds. The code that uses the value therefore names the lock
// it holds, and clang checks that it does hold it:
//
//   struct Entry {
//     base::Guarded<State> state;  // by the lock of the list
//   };
//   entry.state.Under(mutex_).is_open = true;
#pragma once

#include <utility>

#include "base/mutex.h"

namespace nereid::base {

// As thread-safe as its users are: all of them have to name the same lock.
template <typename T>
class Guarded {
 public:
  template <typename... Arguments>
  explicit Guarded(Arguments&&... arguments) : value_{std::forward<Arguments>(arguments)...} {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // REQUIRES: `mutex` is the lock that guards the value, and the calling thread holds it. The
  // reference must not be used after the lock is released.
  T& Under([[maybe_unused]] const Mutex& mutex) NEREID_REQUIRES(mutex) { return value_; }
  const T& Under([[maybe_unused]] const Mutex& mutex) const NEREID_REQUIRES(mutex) {
    return value_;
  }

 private:
  T value_;
};

}  // namespace nereid::base
