// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/rate_limiter.cc of Triton.
#include "schedule/rate_limiter.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace nereid::schedule {
namespace {

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

RateLimiter::RateLimiter(ResourceMap limits) : limits_(std::move(limits)) {}

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

size_t RateLimiter::Available(const Key& key) const {
  const auto found = resources_.find(key);
  const std::optional<size_t> limit = Limit(key);
  if (found == resources_.end()) return limit.value_or(0);
  const Resource& resource = found->second;
  const size_t needed = resource.needs.empty() ? 0 : resource.needs.rbegin()->first;
  const size_t size = limit.value_or(needed);
  return size > resource.in_use ? size - resource.in_use : 0;
}

std::string RateLimiter::Describe() {
  std::string text;
  base::MutexLock lock(mutex_);
  for (const auto& [key, resource] : resources_) {
    if (resource.needs.empty()) continue;
    const size_t count = Limit(key).value_or(resource.needs.rbegin()->first);
    text +=
        key.first == kGlobalResource ? "\n\tGLOBAL: " : fmt::format("\n\tDevice: {} ", key.first);
    text += fmt::format("Resource: {}\t Count: {}", key.second, count);
  }
  return text;
}

bool RateLimiter::Fits(const Claim& claim) const {
  for (const auto& need : claim.options_.needs.resources) {
    if (need.count > Available(KeyOf(need, claim.options_.device))) return false;
  }
  return true;
}

void RateLimiter::Use(const Claim& claim) {
  for (const auto& need : claim.options_.needs.resources) {
    resources_[KeyOf(need, claim.options_.device)].in_use += need.count;
  }
}

void RateLimiter::Free(const Claim& claim) {
  for (const auto& need : claim.options_.needs.resources) {
    resources_[KeyOf(need, claim.options_.device)].in_use -= need.count;
  }
}

std::vector<RateLimiter::Claim*> RateLimiter::GrantFirst() {
  std::vector<Claim*> to_tell;
  while (!line_.empty()) {
    // The cast is safe: claims in the line change only through their own methods.
    Claim& first = const_cast<Claim&>(*std::get<2>(*line_.begin()));
    if (!Fits(first)) break;
    line_.erase(line_.begin());
    Use(first);
    Claim::State& state = first.state_.Under(mutex_);
    state.phase = Claim::Phase::kGranted;
    ++state.telling;
    to_tell.push_back(&first);
  }
  return to_tell;
}

base::Result<std::unique_ptr<RateLimiter::Claim>> RateLimiter::Register(ClaimOptions options) {
  NEREID_ASSIGN_OR_RETURN(options.needs.resources, AddUp(options.needs.resources));
  NEREID_RETURN_IF_ERROR(Add(options.needs, options.device));
  std::unique_ptr<Claim> claim(new Claim(*this, std::move(options)));
  std::vector<Claim*> granted;
  {
    // The first claim in line may fit now.
    base::MutexLock lock(mutex_);
    granted = GrantFirst();
  }
  Tell(granted);
  return claim;
}

void RateLimiter::Join(Claim& claim) {
  Claim::State& state = claim.state_.Under(mutex_);
  state.arrival = ++arrivals_;
  state.phase = Claim::Phase::kWaiting;
  line_.insert(claim.Rank(state));
}

base::Status RateLimiter::Add(const config::RateLimiter& needs, int32_t device) {
  base::MutexLock lock(mutex_);
  for (const auto& need : needs.resources) {
    const Key key = KeyOf(need, device);
    const bool conflicts = std::ranges::any_of(resources_, [&](const auto& entry) {
      return entry.first.second == need.name && !entry.second.needs.empty() &&
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
  for (const auto& need : needs.resources) ++resources_[KeyOf(need, device)].needs[need.count];
  return base::OkStatus();
}

void RateLimiter::Tell(const std::vector<Claim*>& granted) {
  for (Claim* claim : granted) {
    claim->options_.on_grant();
    base::MutexLock lock(mutex_);
    --claim->state_.Under(mutex_).telling;
    told_.NotifyAll();
  }
}

void RateLimiter::Unregister(Claim& claim) {
  base::MutexLock lock(mutex_);
  while (claim.state_.Under(mutex_).telling > 0) told_.Wait(mutex_);
  for (const auto& need : claim.options_.needs.resources) {
    auto& needs = resources_[KeyOf(need, claim.options_.device)].needs;
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

bool RateLimiter::Claim::TryTake() {
  base::MutexLock lock(limiter_.mutex_);
  State& state = state_.Under(limiter_.mutex_);
  if (state.phase == Phase::kIdle) {
    limiter_.Join(*this);
    // Only the first claim in line is granted, and those behind it are no worse off than before.
    const auto first = limiter_.line_.begin();
    if (std::get<2>(*first) == this && limiter_.Fits(*this)) {
      limiter_.line_.erase(first);
      limiter_.Use(*this);
      state.phase = Phase::kGranted;
    }
  }
  if (state.phase != Phase::kGranted) return false;
  state.phase = Phase::kTaken;
  ++state.execution_count;
  return true;
}

void RateLimiter::Claim::Give(bool wants_more) {
  std::vector<Claim*> to_tell;
  {
    base::MutexLock lock(limiter_.mutex_);
    State& state = state_.Under(limiter_.mutex_);
    if (state.phase == Phase::kIdle) return;
    if (state.phase == Phase::kWaiting) {
      limiter_.line_.erase(Rank(state));
    } else {
      limiter_.Free(*this);
    }
    state.phase = Phase::kIdle;
    if (wants_more) limiter_.Join(*this);
    to_tell = limiter_.GrantFirst();
  }
  limiter_.Tell(to_tell);
}

}  // namespace nereid::schedule
