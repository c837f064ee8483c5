// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <algorithm>

namespace nereid::base {
namespace {

// The largest number of units that a thread takes at once.
constexpr uint64_t kMaxBlock = 64;
// No more than this part of a budget lies with threads that do not use it.
constexpr uint64_t kMaxAtHandPart = 8;

// A limit that can be counted in either direction.
uint64_t Countable(uint64_t limit) { return std::min<uint64_t>(limit, INT64_MAX); }

}  // namespace

bool Budget::TryTake(uint64_t amount) {
  uint64_t used = used_.load();
  do {
    if (amount > limit_ - std::min(used, limit_)) {
      CountRefusal();
      return false;
    }
  } while (!used_.compare_exchange_weak(used, used + amount));
  return true;
}

UnitBudget::UnitBudget(uint64_t limit)
    : limit_(limit),
      block_(static_cast<int64_t>(
          std::clamp<uint64_t>(limit / (kMaxAtHandPart * kPlaces), 1, kMaxBlock))),
      free_(static_cast<int64_t>(Countable(limit))) {}

size_t UnitBudget::ChoosePlace() {
  static std::atomic<uint32_t> threads{0};
  // Any value but 0 will do; two threads that share a place are only slower.
  place_of_thread_ = threads.fetch_add(1) % kPlaces + kPlaces;
  return place_of_thread_ % kPlaces;
}

void UnitBudget::Collect() {
  // A closed place gives no unit, but it still takes those that come back. So once all are closed,
  // a unit that is in one of them stays there until it is found.
  for (Place& place : places_) place.at_hand.fetch_sub(kClosed);
  for (Place& place : places_) free_ += place.at_hand.exchange(0) + kClosed;
}

bool UnitBudget::TakeSlowly(Place& place) {
  MutexLock lock(mutex_);
  if (free_ == 0) Collect();
  if (free_ == 0) {
    refusals_.fetch_add(1);
    return false;
  }
  const int64_t taken = std::min(free_, block_);
  free_ -= taken;
  place.at_hand.fetch_add(taken - 1);
  return true;
}

void UnitBudget::ReturnBlock(Place& place) {
  MutexLock lock(mutex_);
  int64_t there = place.at_hand.load();
  do {
    if (there <= block_) return;
  } while (!place.at_hand.compare_exchange_weak(there, there - block_));
  free_ += block_;
}

uint64_t UnitBudget::used() const {
  MutexLock lock(mutex_);
  int64_t left = free_;
  for (const Place& place : places_) left += place.at_hand.load();
  const auto all = static_cast<int64_t>(Countable(limit_));
  return static_cast<uint64_t>(std::clamp<int64_t>(all - left, 0, all));
}

}  // namespace nereid::base
