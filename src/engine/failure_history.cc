// SPDX-License-Identifier: Apache-2.0
#include "engine/failure_history.h"

#include <utility>

namespace nereid::engine {

bool FailureHistory::IsRepetition(const VersionKey& key, int64_t file_time_ns) const {
  const auto failure = failures_.find(key);
  return failure != failures_.end() && failure->second.file_time_ns == file_time_ns;
}

bool FailureHistory::Note(const VersionKey& key, int64_t file_time_ns, std::string reason) {
  Failure now{.file_time_ns = file_time_ns, .reason = std::move(reason)};
  const auto [failure, is_first] = failures_.try_emplace(key);
  if (!is_first && failure->second == now) return false;
  failure->second = std::move(now);
  return true;
}

}  // namespace nereid::engine
