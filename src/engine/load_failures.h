// SPDX-License-Identifier: Apache-2.0
// Models on demand that could not be loaded, so that not every request tries again.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace nereid::engine {

// Thread-compatible.
class LoadFailures {
 public:
  // After a failure, requests get the error again for so long; the pause doubles with each.
  explicit LoadFailures(std::chrono::milliseconds first_pause) : first_pause_(first_pause) {}

  // Notes that a load begins. There is one at a time.
  void NoteBegin() { unloaded_.clear(); }
  // Returns the error with the time after which the next load makes sense. It is not remembered if
  // the model, or one of its parts, was unloaded since the load began: that has ended the load, and
  // says nothing of the next one.
  base::Status Note(const std::string& name, base::Status status, base::TimePoint now,
                    const std::set<std::string>& parts = {}) {
    const auto is_unloaded = [this](const std::string& one) { return unloaded_.contains(one); };
    if (is_unloaded(name) || std::ranges::any_of(parts, is_unloaded)) {
      return status.WithRetryAfter(first_pause_);
    }
    Failure& failure = failures_[name];
    failure.pause = failure.pause.count() == 0
                        ? first_pause_
                        : std::max(failure.pause, std::min(failure.pause * 2, kMaxPause));
    failure.retry_at = now + failure.pause;
    failure.status = std::move(status);
    return failure.status.WithRetryAfter(failure.pause);
  }
  // Returns the error of the last load, if it is too soon for the next one.
  std::optional<base::Status> TooSoon(std::string_view name, base::TimePoint now) const {
    const auto failure = failures_.find(name);
    if (failure == failures_.end() || now >= failure->second.retry_at) return std::nullopt;
    return failure->second.status.WithRetryAfter(failure->second.retry_at - now);
  }
  bool Contains(std::string_view name) const { return failures_.contains(name); }
  // Notes an unload, which may end the load in progress. The failure of its model is forgotten.
  void NoteUnload(const std::string& name) {
    unloaded_.insert(name);
    Forget(name);
  }
  void Forget(std::string_view name) {
    if (const auto failure = failures_.find(name); failure != failures_.end()) {
      failures_.erase(failure);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kMaxPause = std::chrono::minutes(1);

  // A load that failed.
  struct Failure {
    base::Status status;
    base::TimePoint retry_at;
    std::chrono::milliseconds pause{0};
  };

  const std::chrono::milliseconds first_pause_;
  std::map<std::string, Failure, std::less<>> failures_;
  std::set<std::string> unloaded_;  // since the last load began
};

}  // namespace nereid::engine
