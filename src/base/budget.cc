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

int64_t UnitBudget::TakeFree(int64_t wanted) {
  int64_t free = free_.load();
  int64_t taken;
  do {
    taken = std::min(free, wanted);
    if (taken <= 0) return 0;
  } while (!free_.compare_exchange_weak(free, free - taken));
  return taken;
}

int64_t UnitBudget::Collect() {
  int64_t collected = 0;
  for (Place& place : places_) {
    int64_t there = place.at_hand.load();
    while (there > 0 && !place.at_hand.compare_exchange_weak(there, 0)) {
    }
    collected += std::max<int64_t>(there, 0);
  }
  return collected;
}

bool UnitBudget::TakeSlowly(Place& place) {
  int64_t taken = TakeFree(block_);
  if (taken == 0) taken = Collect();
  if (taken == 0) {
    refusals_.fetch_add(1);
    return false;
  }
  place.at_hand.fetch_add(taken - 1);
  return true;
}

void UnitBudget::ReturnBlock(Place& place) {
  int64_t there = place.at_hand.load();
  do {
    if (there <= block_) return;
  } while (!place.at_hand.compare_exchange_weak(there, there - block_));
  free_.fetch_add(block_);
}

uint64_t UnitBudget::used() const {
  int64_t left = free_.load();
  for (const Place& place : places_) left += std::max<int64_t>(place.at_hand.load(), 0);
  const auto all = static_cast<int64_t>(Countable(limit_));
  return static_cast<uint64_t>(std::clamp<int64_t>(all - left, 0, all));
}

}  // namespace nereid::base
