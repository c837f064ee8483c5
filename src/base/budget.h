// SPDX-License-Identifier: Apache-2.0
// Limits for what clients can make the server hold: connections, requests, bytes. Code that needs a
// part of a budget takes it and gives it back at its end. What does not fit is refused and counted;
// the caller tells the client, and the metrics page shows the counts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/mutex.h"

namespace nereid::base {

// A bounded amount. Thread-safe.
class Budget {
 public:
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  explicit Budget(uint64_t limit = kUnlimited) : limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Takes `amount` if that much is left. Otherwise takes nothing, counts a refusal and returns
  // false.
  [[nodiscard]] bool TryTake(uint64_t amount);
  // Gives back a part of what was taken.
  void Give(uint64_t amount) { used_.fetch_sub(amount); }
  // Counts a refusal that the caller decided itself, for example one by a rate.
  void CountRefusal() { refusals_.fetch_add(1); }

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(); }
  uint64_t refusals() const { return refusals_.load(); }
  // Whether so little is left that what makes no progress should go.
  bool is_scarce() const { return used() > limit_ - limit_ / 4; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> refusals_{0};
};

// A part of a budget, given back when this is destroyed. Thread-compatible.
class BudgetGrant {
 public:
  BudgetGrant() = default;
  BudgetGrant(BudgetGrant&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), amount_(std::exchange(other.amount_, 0)) {}
  BudgetGrant& operator=(BudgetGrant&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~BudgetGrant() { Reset(); }

  uint64_t amount() const { return amount_; }
  // Makes this a part of `amount` of `budget`, which outlives it. Returns false, without a change,
  // if the budget has not enough left. REQUIRES: the same budget in every call.
  [[nodiscard]] bool Resize(Budget& budget, uint64_t amount) {
    if (amount > amount_ && !budget.TryTake(amount - amount_)) return false;
    if (amount < amount_) budget.Give(amount_ - amount);
    budget_ = &budget;
    amount_ = amount;
    return true;
  }
  void Reset() {
    if (amount_ > 0) budget_->Give(amount_);
    amount_ = 0;
  }

 private:
  Budget* budget_ = nullptr;
  uint64_t amount_ = 0;
};

// A budget of single units of which every request takes one. Threads take units from it in blocks
// and keep some at hand, each thread in a place of its own, so that no counter is shared between
// requests. The limit is never exceeded, and a unit is refused only if at one moment no place has
// one. Thread-safe.
class UnitBudget {
 public:
  explicit UnitBudget(uint64_t limit = Budget::kUnlimited);
  UnitBudget(const UnitBudget&) = delete;
  UnitBudget& operator=(const UnitBudget&) = delete;

  [[nodiscard]] bool TryTake() {
    Place& place = places_[PlaceOfThread()];
    int64_t at_hand = place.at_hand.load();
    while (at_hand > 0) {
      if (place.at_hand.compare_exchange_weak(at_hand, at_hand - 1)) [[likely]]
        return true;
    }
    return TakeSlowly(place);
  }
  void Give() {
    Place& place = places_[PlaceOfThread()];
    if (place.at_hand.fetch_add(1) >= 2 * block_) [[unlikely]]
      ReturnBlock(place);
  }

  uint64_t limit() const { return limit_; }
  // The units that are out at about this moment.
  uint64_t used() const NEREID_EXCLUDES(mutex_);
  uint64_t refusals() const { return refusals_.load(); }

 private:
  static constexpr size_t kPlaces = 16;
  struct alignas(64) Place {
    std::atomic<int64_t> at_hand{0};  // less by kClosed while the place is closed
  };
  // More than all the units that threads have at hand.
  static constexpr int64_t kClosed = int64_t{1} << 62;

  static size_t PlaceOfThread() {
    const uint32_t mine = place_of_thread_;
    return mine != 0 ? mine % kPlaces : ChoosePlace();
  }
  static size_t ChoosePlace();
  bool TakeSlowly(Place& place) NEREID_EXCLUDES(mutex_);
  void ReturnBlock(Place& place) NEREID_EXCLUDES(mutex_);
  // Makes all units free that threads have at hand at one moment, and maybe some that they get
  // later.
  void Collect() NEREID_REQUIRES(mutex_);

  static inline constinit thread_local uint32_t place_of_thread_ = 0;  // 0: none yet

  const uint64_t limit_;
  const int64_t block_;
  std::atomic<uint64_t> refusals_{0};
  std::array<Place, kPlaces> places_;
  // Held where units are neither free nor at hand, so that nobody misses them.
  mutable Mutex mutex_;
  int64_t free_ NEREID_GUARDED_BY(mutex_);  // in no place
};

// One unit of a UnitBudget, given back when this is destroyed. Thread-compatible.
class UnitGrant {
 public:
  UnitGrant() = default;
  UnitGrant(UnitGrant&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)) {}
  UnitGrant& operator=(UnitGrant&& other) noexcept {
    std::swap(budget_, other.budget_);
    return *this;
  }
  ~UnitGrant() { Reset(); }

  // Returns false if the budget, which outlives this, has none left. REQUIRES: this is empty.
  [[nodiscard]] bool Take(UnitBudget& budget) {
    if (!budget.TryTake()) [[unlikely]]
      return false;
    budget_ = &budget;
    return true;
  }
  void Reset() {
    if (UnitBudget* const budget = std::exchange(budget_, nullptr)) budget->Give();
  }

 private:
  UnitBudget* budget_ = nullptr;
};

}  // namespace nereid::base
