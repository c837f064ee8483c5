// SPDX-License-Identifier: Apache-2.0
#include "schedule/lane.h"

#include <algorithm>
#include <utility>

namespace nereid::schedule {
namespace {

// The virtual time that one item takes from a caller of weight 1.
constexpr uint64_t kUnit = uint64_t{1} << 20;

}  // namespace

Lane::Lane(const BatchPolicy& policy, core::CallerRef caller)
    : policy_(policy),
      has_levels_(policy.priority_levels != 0),
      caller_(std::move(caller)),
      weight_(caller_ == nullptr ? 1 : std::max<uint32_t>(caller_->limits.weight, 1)),
      item_cost_(kUnit / weight_) {}

const Lane::Level* Lane::FindLevel(uint64_t priority) const {
  if (!has_levels_) return &plain_;
  const auto level = levels_.find(priority);
  return level == levels_.end() ? nullptr : &level->second;
}

size_t Lane::CountAt(uint64_t priority) const {
  const Level* const level = FindLevel(priority);
  return level == nullptr ? 0 : level->size();
}

size_t Lane::CountUpTo(uint64_t priority) const {
  if (!has_levels_) return size_;
  size_t count = 0;
  const auto behind = levels_.upper_bound(priority);
  for (auto level = levels_.begin(); level != behind; ++level) count += level->second.size();
  return count;
}

core::Request* Lane::NewestAt(uint64_t priority) const {
  const Level* const level = FindLevel(priority);
  if (level == nullptr) return nullptr;
  core::Request* const waiting = level->waiting.back();
  return waiting != nullptr ? waiting : level->delayed.back();
}

uint64_t Lane::Level::OldestNs() const {
  uint64_t oldest_ns = UINT64_MAX;
  if (!waiting.empty()) oldest_ns = waiting.front()->times.queue_start_ns;
  if (!delayed.empty()) oldest_ns = std::min(oldest_ns, delayed.front()->times.queue_start_ns);
  return oldest_ns;
}

uint64_t Lane::OldestNs() const {
  uint64_t oldest_ns = plain_.OldestNs();
  for (const auto& [priority, level] : levels_) oldest_ns = std::min(oldest_ns, level.OldestNs());
  return oldest_ns;
}

void Lane::ForgetEmptyLevel(const core::Request& removed) {
  const auto level = levels_.find(policy_.PriorityOf(removed));
  if (level != levels_.end() && level->second.size() == 0) levels_.erase(level);
}

void Lane::Delay(core::Request& request) {
  Level& level = LevelOf(request);
  level.delayed.PushBack(level.waiting.Unlink(request));
}

void Lane::Cursor::Continue() {
  while (request_ == nullptr) {
    if (!is_delayed_) {
      is_delayed_ = true;
      request_ = level_->delayed.front();
      continue;
    }
    if (next_ == end_) return;
    level_ = &next_->second;
    ++next_;
    is_delayed_ = false;
    request_ = level_->waiting.front();
  }
}

}  // namespace nereid::schedule
