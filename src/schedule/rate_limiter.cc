// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/rate_limiter.cc of Triton.
#include "schedule/rate_limiter.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"

namespace nereid::schedule {
namespace {

constexpr uint64_t kMaxPatienceNs = 60'000'000'000;
// The line is open for so many times as long as it was closed without effect.
constexpr uint64_t kOpenFactor = 10;

using Resources = std::vector<config::RateLimiter::Resource>;

base::Status BothKindsError(const std::string& name) {
  return base::InvalidArgumentError(
      fmt::format("Resource \"{}\" is present as both global and device-specific resource in the "
                  "model configuration.",
                  name));
}

// Returns one entry for each resource, with the sum of its counts: so many are taken at once.
base::Result<Resources> AddUp(const Resources& needs) {
  Resources sums;
  for (const auto& need : needs) {
    const auto same = std::ranges::find(sums, need.name, &config::RateLimiter::Resource::name);
    if (same == sums.end()) {
      sums.push_back(need);
      continue;
    }
    if (same->global != need.global) return BothKindsError(need.name);
    if (need.count > std::numeric_limits<uint32_t>::max() - same->count) {
      return base::InvalidArgumentError(fmt::format(
          "Resource \"{}\" is needed too often in the model configuration.", need.name));
    }
    same->count += need.count;
  }
  return sums;
}

}  // namespace

RateLimiter::RateLimiter(ResourceMap limits, base::Timers& timers,
                         std::chrono::nanoseconds patience)
    : limits_(std::move(limits)),
      first_patience_ns_(static_cast<uint64_t>(patience.count())),
      timer_(timers, [this] { OnTimer(); }) {}

RateLimiter::Key RateLimiter::KeyOf(const config::RateLimiter::Resource& resource, int32_t device) {
  return {resource.global ? kGlobalResource : device, resource.name};
}

std::optional<size_t> RateLimiter::Limit(const Key& key) const {
  if (limits_.empty()) return std::nullopt;
  size_t limit = 0;
  for (const auto& [device, by_name] : limits_) {
    // A count for all devices serves each of them.
    if (key.first != kGlobalResource && device != key.first && device != kEachDeviceResource)
      continue;
    const auto found = by_name.find(key.second);
    if (found != by_name.end()) limit = std::max(limit, found->second);
  }
  return limit;
}

std::string RateLimiter::Describe() {
  std::string text;
  base::MutexLock lock(mutex_);
  for (const auto& [key, resource] : resources_) {
    if (resource.needs.empty()) continue;
    text +=
        key.first == kGlobalResource ? "\n\tGLOBAL: " : fmt::format("\n\tDevice: {} ", key.first);
    text += fmt::format("Resource: {}\t Count: {}", key.second, resource.count());
  }
  return text;
}

// --- The line ---

void RateLimiter::Join(Claim& claim) {
  Claim::State& state = claim.state_.Under(mutex_);
  state.arrival = ++arrivals_;
  state.phase = Claim::Phase::kWaiting;
  line_.insert(claim.Rank(state));
}

bool RateLimiter::Fits(const Claim& claim) const {
  return std::ranges::all_of(claim.needs_, [](const Claim::Need& need) {
    return need.count <= need.resource.available();
  });
}

bool RateLimiter::IsHeldBack(const Claim& claim) const {
  return !is_open_ && std::ranges::any_of(claim.needs_, [look = looks_](const Claim::Need& need) {
    return need.count > 0 && need.resource.held_back == look;
  });
}

void RateLimiter::Use(Claim& claim) {
  for (const Claim::Need& need : claim.needs_) need.resource.in_use += need.count;
  claim.state_.Under(mutex_).phase = Claim::Phase::kGranted;
}

std::vector<RateLimiter::Claim*> RateLimiter::Grant(const Claim* taker) {
  std::vector<Claim*> granted;
  ++looks_;
  const Claim* first = nullptr;
  holds_back_ = false;
  for (auto place = line_.begin(); place != line_.end();) {
    Claim& claim = *std::get<Claim*>(*place);
    const bool fits = Fits(claim);
    if (!fits && first == nullptr) NoteFirst(first = &claim);
    if (fits && !IsHeldBack(claim)) {
      place = line_.erase(place);
      Use(claim);
      if (&claim == taker) continue;
      ++claim.state_.Under(mutex_).telling;
      granted.push_back(&claim);
      continue;
    }
    holds_back_ |= fits;
    for (const Claim::Need& need : claim.needs_) {
      if (need.count > 0) need.resource.held_back = looks_;
    }
    ++place;
  }
  if (first == nullptr) NoteFirst(nullptr);
  if (holds_back_) LookAgain(patience_ns_);
  return granted;
}

void RateLimiter::Tell(const std::vector<Claim*>& granted) {
  for (Claim* claim : granted) {
    claim->on_grant_();
    base::MutexLock lock(mutex_);
    --claim->state_.Under(mutex_).telling;
    told_.NotifyAll();
  }
}

// --- Patience ---

void RateLimiter::NoteFirst(const Claim* claim) {
  if (claim == first_) return;
  first_ = claim;
  is_open_ = false;
  patience_ns_ = first_patience_ns_;
}

bool RateLimiter::IsNeededByFirst(const Claim& claim) const {
  if (first_ == nullptr) return false;
  const auto is_same = [](const Claim::Need& one, const Claim::Need& other) {
    return &one.resource == &other.resource;
  };
  return std::ranges::find_first_of(claim.needs_, first_->needs_, is_same) != claim.needs_.end();
}

void RateLimiter::LookAgain(uint64_t after_ns) {
  const uint64_t at_ns = base::NowNs() + after_ns;
  if (armed_at_ns_ != 0 && armed_at_ns_ <= at_ns) return;
  armed_at_ns_ = at_ns;
  gives_seen_ = gives_;
  timer_.ArmAt(at_ns);
}

void RateLimiter::OnTimer() {
  std::vector<Claim*> granted;
  {
    base::MutexLock lock(mutex_);
    armed_at_ns_ = 0;
    if (is_open_) {
      is_open_ = false;
      patience_ns_ = std::min(2 * patience_ns_, kMaxPatienceNs);
    } else if (holds_back_ && gives_ == gives_seen_) {
      is_open_ = true;
      LookAgain(kOpenFactor * patience_ns_);
    }
    granted = Grant();
  }
  Tell(granted);
}

// --- Claims ---

base::Result<std::vector<RateLimiter::Claim::Need>> RateLimiter::Add(
    const config::RateLimiter& needs, int32_t device) {
  for (const auto& need : needs.resources) {
    const Key key = KeyOf(need, device);
    const bool conflicts = std::ranges::any_of(resources_, [&](const auto& entry) {
      return entry.first.second == need.name && entry.second.staying > 0 &&
             (entry.first.first == kGlobalResource) != need.global;
    });
    if (conflicts) return BothKindsError(need.name);
    if (const auto limit = Limit(key); limit && need.count > *limit) {
      return base::InvalidArgumentError(
          fmt::format("Resource count for \"{}\" is limited to {} which will prevent scheduling of "
                      "one or more model instances, the minimum required count is {}",
                      need.name, *limit, need.count));
    }
  }
  std::vector<Claim::Need> found;
  for (const auto& need : needs.resources) {
    const Key key = KeyOf(need, device);
    Resource& resource = resources_.try_emplace(key, Resource{.limit = Limit(key)}).first->second;
    ++resource.needs[need.count];
    ++resource.staying;
    found.push_back({.resource = resource, .count = need.count});
  }
  return found;
}

base::Result<std::unique_ptr<RateLimiter::Claim>> RateLimiter::Register(ClaimOptions options) {
  NEREID_ASSIGN_OR_RETURN(options.needs.resources, AddUp(options.needs.resources));
  std::unique_ptr<Claim> claim;
  std::vector<Claim*> granted;
  {
    base::MutexLock lock(mutex_);
    NEREID_ASSIGN_OR_RETURN(std::vector<Claim::Need> needs, Add(options.needs, options.device));
    claim.reset(
        new Claim(*this, std::move(needs), options.needs.priority, std::move(options.on_grant)));
    // There may be more of a resource now.
    granted = Grant();
  }
  Tell(granted);
  return claim;
}

void RateLimiter::NoteLeaving(Claim& claim, bool is_leaving) {
  if (std::exchange(claim.state_.Under(mutex_).is_leaving, is_leaving) == is_leaving) return;
  for (const Claim::Need& need : claim.needs_) {
    size_t& staying = need.resource.staying;
    staying = is_leaving ? staying - 1 : staying + 1;
  }
}

void RateLimiter::Unregister(Claim& claim) {
  base::MutexLock lock(mutex_);
  while (claim.state_.Under(mutex_).telling > 0) told_.Wait(mutex_);
  NoteLeaving(claim, true);
  for (const Claim::Need& need : claim.needs_) {
    auto& needs = need.resource.needs;
    const auto found = needs.find(need.count);
    if (found != needs.end() && --found->second == 0) needs.erase(found);
  }
}

RateLimiter::Claim::~Claim() {
  Give();
  limiter_.Unregister(*this);
}

bool RateLimiter::Claim::is_waiting() const {
  base::MutexLock lock(limiter_.mutex_);
  return state_.Under(limiter_.mutex_).phase == Phase::kWaiting;
}

bool RateLimiter::Claim::is_idle() const {
  base::MutexLock lock(limiter_.mutex_);
  return state_.Under(limiter_.mutex_).phase == Phase::kIdle;
}

void RateLimiter::Claim::SetLeaving(bool is_leaving) {
  base::MutexLock lock(limiter_.mutex_);
  limiter_.NoteLeaving(*this, is_leaving);
}

bool RateLimiter::Claim::TryTake() {
  base::MutexLock lock(limiter_.mutex_);
  State& state = state_.Under(limiter_.mutex_);
  if (state.phase == Phase::kIdle) {
    if (limiter_.line_.empty() && limiter_.Fits(*this)) {
      limiter_.Use(*this);
    } else {
      limiter_.Join(*this);
      // One more in line lets nobody else in.
      NEREID_CHECK(limiter_.Grant(this).empty());
    }
  }
  if (state.phase != Phase::kGranted) return false;
  state.phase = Phase::kTaken;
  ++state.execution_count;
  return true;
}

void RateLimiter::Claim::Give(bool wants_more) {
  std::vector<Claim*> granted;
  {
    base::MutexLock lock(limiter_.mutex_);
    State& state = state_.Under(limiter_.mutex_);
    if (state.phase == Phase::kIdle) return;
    if (state.phase == Phase::kWaiting) {
      limiter_.line_.erase(Rank(state));
    } else {
      for (const Need& need : needs_) need.resource.in_use -= need.count;
      if (limiter_.IsNeededByFirst(*this)) ++limiter_.gives_;
    }
    state.phase = Phase::kIdle;
    if (wants_more) limiter_.Join(*this);
    granted = limiter_.Grant();
  }
  limiter_.Tell(granted);
}

}  // namespace nereid::schedule
