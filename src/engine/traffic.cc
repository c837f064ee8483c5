// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic.h"

namespace nereid::engine {
namespace {

// 2^64 divided by the golden ratio, odd: multiples of it modulo 2^64 are spread evenly (a Weyl
// sequence of the lowest discrepancy).
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

// The memory that the copies for one shadow may take.
constexpr uint64_t kMaxMirrorBytes = uint64_t{64} << 20;

double InUnit(uint64_t number) { return static_cast<double>(number >> 11) * 0x1p-53; }

bool IsSameTarget(const service::Shadow& a, const service::Shadow& b) {
  return a.model == b.model && a.version == b.version;
}

}  // namespace

// Relaxed: no other data depend on the count.
double EvenSpread::Next() {
  return InUnit(count_.fetch_add(1, std::memory_order_relaxed) * kGolden);
}

// FNV-1a, whose result is mixed as SplitMix64 does, because its high bits change little.
double PlaceOf(std::string_view model, std::string_view key) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  };
  add(model);
  add({"\0", 1});
  add(key);
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
  return InUnit(hash ^ (hash >> 31));
}

bool ShadowTally::Take(uint32_t most, uint64_t bytes) {
  const bool has_place = in_flight.fetch_add(1) < most;
  const bool has_memory = bytes_in_flight.fetch_add(bytes) + bytes <= kMaxMirrorBytes;
  if (has_place && has_memory) return true;
  Give(bytes);
  dropped.fetch_add(1);
  return false;
}

void ShadowTally::Give(uint64_t bytes) {
  in_flight.fetch_sub(1);
  bytes_in_flight.fetch_sub(bytes);
}

service::ShadowCounts ShadowTally::Read() const {
  return {equal.load(), different.load(), failed.load(), dropped.load()};
}

Traffic::Traffic(service::TrafficRules rules, service::TrafficRules configured,
                 const std::shared_ptr<const Traffic>& before)
    : rules_(std::move(rules)),
      configured_(std::move(configured)),
      for_canary_(before != nullptr ? before->for_canary_ : std::make_shared<EvenSpread>()),
      for_shadow_(before != nullptr ? before->for_shadow_ : std::make_shared<EvenSpread>()) {
  if (!rules_.shadow) return;
  const bool is_same = before != nullptr && before->rules_.shadow &&
                       IsSameTarget(*rules_.shadow, *before->rules_.shadow);
  tally_ = is_same ? before->tally_ : std::make_shared<ShadowTally>();
}

std::shared_ptr<const Traffic> Traffic::AfterLoad(const service::TrafficRules& configured,
                                                  const std::shared_ptr<const Traffic>& before) {
  if (before != nullptr && before->configured_ == configured) return before;
  if (before == nullptr && configured == service::TrafficRules()) return nullptr;
  return std::shared_ptr<const Traffic>(new Traffic(configured, configured, before));
}

// Even without any rules left there is an object, because sequences may be on a version that the
// rules before have chosen.
std::shared_ptr<const Traffic> Traffic::AfterChange(service::TrafficRules rules,
                                                    const std::shared_ptr<const Traffic>& before) {
  service::TrafficRules configured =
      before != nullptr ? before->configured_ : service::TrafficRules();
  return std::shared_ptr<const Traffic>(
      new Traffic(std::move(rules), std::move(configured), before));
}

service::TrafficState Traffic::Read() const {
  service::TrafficState state;
  state.rules = rules_;
  state.is_as_configured = rules_ == configured_;
  if (tally_ != nullptr) state.shadow_counts = tally_->Read();
  return state;
}

bool Traffic::ChoosesCanary(std::string_view model, std::string_view key) const {
  const double place = key.empty() ? for_canary_->Next() : PlaceOf(model, key);
  return place * 100 < rules_.canary->percent;
}

}  // namespace nereid::engine
