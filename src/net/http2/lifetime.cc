// SPDX-License-Identifier: Apache-2.0
#include "http2/lifetime.h"

#include <algorithm>

#include "http2/nanoseconds.h"

namespace nereid::http2 {
namespace {

// The maximum time between the first GOAWAY and the second one.
constexpr uint64_t kDrainPingNs = 1'000'000'000;

}  // namespace

Lifetime::Decision Lifetime::Check(uint64_t now_ns) {
  Decision decision;
  decision.next_ns = kNever;
  if (!has_settings_) {
    decision.next_ns = opened_ns_ + Ns(options_.preface_timeout);
    decision.is_dead = now_ns >= decision.next_ns;
  }
  if (drain_ == Drain::kAnnounced) {
    if (now_ns >= drain_due_ns()) {
      decision.confirms_drain = ConfirmDrain();
    } else {
      decision.next_ns = std::min(decision.next_ns, drain_due_ns());
    }
  }
  if (!options_.max_connection_age.has_value()) return decision;
  const uint64_t age_ns = opened_ns_ + Ns(*options_.max_connection_age);
  if (now_ns < age_ns) {
    decision.next_ns = std::min(decision.next_ns, age_ns);
    return decision;
  }
  decision.starts_drain = StartDrain(now_ns);
  if (drain_ == Drain::kAnnounced) decision.next_ns = std::min(decision.next_ns, drain_due_ns());
  if (!options_.max_connection_age_grace.has_value()) return decision;
  const uint64_t end_ns = age_ns + Ns(*options_.max_connection_age_grace);
  if (now_ns >= end_ns) decision.is_dead = true;
  decision.next_ns = std::min(decision.next_ns, end_ns);
  return decision;
}

bool Lifetime::StartDrain(uint64_t now_ns) {
  if (drain_ != Drain::kNo) return false;
  drain_ = Drain::kAnnounced;
  drain_started_ns_ = now_ns;
  return true;
}

uint64_t Lifetime::drain_due_ns() const { return drain_started_ns_ + kDrainPingNs; }

bool Lifetime::ConfirmDrain() {
  if (drain_ != Drain::kAnnounced) return false;
  drain_ = Drain::kConfirmed;
  return true;
}

}  // namespace nereid::http2
