// SPDX-License-Identifier: Apache-2.0
// What the statistics of models say about their use since they were last read, for the policy of
// models on demand.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "engine/demand_host.h"
#include "engine/eviction_policy.h"

namespace nereid::engine {

// Thread-compatible.
class ModelUse {
 public:
  // `name` was loaded, or a load has changed nothing. The policy knows of `counted` requests for it
  // that will be in its statistics.
  void NoteLoaded(const std::string& name, uint64_t counted) { seen_[name].ahead = counted; }
  // Tells `policy` what is new; returns the models in use, and the ensembles with such parts.
  // Models that are loaded although nobody has told the policy have come with others that failed or
  // have gone since; they share the memory `unclaimed`.
  std::set<std::string> Update(const ModelActivities& activities, EvictionPolicy& policy,
                               base::TimePoint now, const MemoryBytes& unclaimed = {});

 private:
  void Adopt(const ModelActivities& activities, EvictionPolicy& policy, base::TimePoint now,
             const MemoryBytes& unclaimed);

  std::map<std::string, std::set<std::string>> parts_;  // of the ensembles that were loaded
  // What was counted of a loaded model.
  struct Seen {
    std::map<int64_t, uint64_t> requests;  // of each version, as they were read
    uint64_t ahead = 0;                    // before they were read
  };

  // Returns how many requests are new, and takes them for seen.
  static uint64_t TakeNew(const ModelActivity& activity, Seen& seen);

  std::map<std::string, Seen> seen_;
};

}  // namespace nereid::engine
