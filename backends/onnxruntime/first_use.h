// SPDX-License-Identifier: Apache-2.0
// Making sessions that know more operators than ONNX Runtime's own.
#pragma once

#include <set>
#include <string>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"

namespace nereid::onnxruntime {

// ONNX Runtime enters the domains of operators into a table of the process when it makes the first
// session that knows them, and fails if another session has entered the same domain meanwhile. This
// makes such sessions one at a time, and later ones with the same operators as they come.
// Thread-safe.
class FirstUse {
 public:
  // Calls make(), an Error() callable that makes a session. `operators` names the operators that it
  // adds to ONNX Runtime's own.
  template <typename Make>
  backend::Error Call(const std::string& operators, const Make& make) {
    {
      const backend::MutexLock lock(mutex_);
      if (!known_.contains(operators)) {
        backend::Error error = make();
        if (error.ok()) {
          known_.insert(operators);
        }
        return error;
      }
    }
    return make();
  }

 private:
  backend::Mutex mutex_;
  std::set<std::string> known_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::onnxruntime
