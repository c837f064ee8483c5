// SPDX-License-Identifier: Apache-2.0
// What a sender was found to be allowed.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "access/scope.h"
#include "core/caller.h"

namespace nereid::access {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Why a sender who may use some models only is refused what tells of all of them, or changes all.
inline constexpr std::string_view kIsAboutAllModels =
    "this is about all models, and the key is for some of them only";

// Immutable.
struct Grant {
  core::CallerRef caller;
  ScopeSet scopes;
  ModelPatterns models;
  int64_t expires_at_s = kNever;  // seconds since 1970
  // Nobody in particular: the request had no credentials.
  bool is_anonymous = false;
};
using GrantRef = std::shared_ptr<const Grant>;

// Whether nothing is hidden from the sender because of the models that it may use. Null: nobody
// asks.
inline bool SeesAllModels(const Grant* grant) {
  return grant == nullptr || grant->models.allows_all();
}

// Whether requests of the sender may read and write clients' shared memory, which is known by names
// that another client may have chosen. Null: nobody asks.
inline bool MayUseRegions(const Grant* grant) {
  return grant == nullptr || grant->scopes.Allows(Scope::kSharedMemory);
}

}  // namespace nereid::access
