// SPDX-License-Identifier: Apache-2.0
// The sessions in use: models and versions that name the same files and options share one, which is
// given back with the last of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "backend_kit/mutex.h"
#include "tensorflow_backend/program.h"

namespace nereid::tensorflow {

// Thread-safe. Loads of different sessions do not wait for each other.
class Sessions {
 public:
  // Returns the session for `spec`, loading it with `runtime` if nobody has it. Sessions of
  // different groups are different ones. The caller keeps the result for as long as it is used.
  backend::Result<std::shared_ptr<Session>> Get(Runtime& runtime, const SessionSpec& spec,
                                                const std::string& group);

 private:
  // Held while the session is loaded, so that others who want it wait.
  struct Slot {
    backend::Mutex mutex;
    std::weak_ptr<Session> session NEREID_KIT_GUARDED_BY(mutex);
  };

  backend::Mutex mutex_;
  std::map<std::string, std::weak_ptr<Slot>> slots_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::tensorflow
