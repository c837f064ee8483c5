// SPDX-License-Identifier: Apache-2.0
// The rules by which the requests of one model find a version, while they are in force, with what
// has to be counted for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "service/traffic.h"

namespace nereid::engine {

// A sequence of numbers in [0, 1) of which any share of successive ones lies below that share, to
// about one number: multiples of the golden ratio. Thread-safe.
class EvenSpread {
 public:
  double Next();

 private:
  std::atomic<uint64_t> count_{0};
};

// Returns a number in [0, 1) that depends on the texts alone, the same on every server.
double PlaceOf(std::string_view model, std::string_view key);

// What became of the copies that went to one shadow, and how many are on their way. Thread-safe.
struct ShadowTally {
  // Takes a place and `bytes` of memory for a copy; returns false and counts a dropped one if too
  // many are on their way.
  bool Take(uint32_t most, uint64_t bytes);
  void Give(uint64_t bytes);
  service::ShadowCounts Read() const;

  std::atomic<uint64_t> equal{0};
  std::atomic<uint64_t> different{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint32_t> in_flight{0};
  std::atomic<uint64_t> bytes_in_flight{0};
};

// Immutable but for what it counts. Thread-safe. Model tables share it, and copies of requests keep
// it.
class Traffic {
 public:
  // Rules after a load, of which `configured` are in the configuration. `before` are those in force
  // until now, or null: a run-time change survives a load whose configuration has the same rules.
  // Returns null if there is nothing to follow.
  static std::shared_ptr<const Traffic> AfterLoad(const service::TrafficRules& configured,
                                                  const std::shared_ptr<const Traffic>& before);
  // Rules after a control call. `before` may be null.
  static std::shared_ptr<const Traffic> AfterChange(service::TrafficRules rules,
                                                    const std::shared_ptr<const Traffic>& before);

  const service::TrafficRules& rules() const { return rules_; }
  // Whether requests that name no version (""), or that label, are divided.
  bool divides(std::string_view label) const {
    return rules_.canary && rules_.canary->percent > 0 &&
           (label.empty() || label == rules_.canary->label);
  }
  bool has_shadow() const { return rules_.shadow && rules_.shadow->percent > 0; }
  service::TrafficState Read() const;

  // Whether the next request goes to the canary; those with the same `key`, unless it is empty, get
  // the same answer until the share changes, and a larger share only adds to them. REQUIRES: there
  // is a canary.
  bool ChoosesCanary(std::string_view model, std::string_view key) const;
  // Whether the next request is copied. REQUIRES: there is a shadow.
  bool ChoosesShadow() const { return for_shadow_->Next() * 100 < rules_.shadow->percent; }
  // REQUIRES: there is a shadow.
  ShadowTally& tally() const { return *tally_; }

 private:
  Traffic(service::TrafficRules rules, service::TrafficRules configured,
          const std::shared_ptr<const Traffic>& before);

  const service::TrafficRules rules_;
  const service::TrafficRules configured_;
  std::shared_ptr<ShadowTally> tally_;  // stays while the shadow is the same version
  // These go on whatever changes: if they began anew, the first request after each change would be
  // the canary's, and shares would grow with the number of changes.
  const std::shared_ptr<EvenSpread> for_canary_;
  const std::shared_ptr<EvenSpread> for_shadow_;
};

}  // namespace nereid::engine
