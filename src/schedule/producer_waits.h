// SPDX-License-Identifier: Apache-2.0
// Keeps models from waiting for each other in a circle across ensembles (max_inflight_requests).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace nereid::schedule {

// The models whose threads wait for the steps behind them, of all ensembles. One ensemble has the
// steps A, B and another one B, A: if A waited for B in the one, and B for A in the other, neither
// would go on. The wait that would close such a circle is not begun. Thread-safe.
class ProducerWaits {
 public:
  // What a producer waits for.
  struct Models {
    std::vector<std::string> waiting;  // ids of the models whose threads may be the producer's
    std::vector<std::string> behind;   // ids of the models that it waits for
  };

  // Notes a wait, until End with the same object. Returns false, and notes nothing, if one of
  // `models.behind` waits for one of `models.waiting`, directly or through others.
  bool Begin(const Models& models);
  void End(const Models& models);

 private:
  base::Mutex mutex_;
  std::vector<const Models*> waits_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::schedule
