// SPDX-License-Identifier: Apache-2.0
// The routes of the console's page beyond the v2 API, which begin with /ui/api/.
#pragma once

#include <cstdint>
#include <string_view>

#include "access/scope.h"
#include "common/restrictions.h"

namespace nereid::console {

enum class DataKind : uint8_t {
  kNone,
  kHistory,
  kLive,
  kModels,
  kModel,
  kSequences,
  kExplanation,
  kLog,
  kTraces,
  kTrace,
};

// A route, and what its sender needs.
struct DataRoute {
  DataKind kind = DataKind::kNone;
  access::Scope scope = access::Scope::kAdmin;
  common::Category category = common::Category::kStatistics;
  // Whether the route tells of all models, so that a key for some of them is not enough.
  bool is_about_all = false;
  // Views of the path.
  std::string_view model;
  std::string_view id;  // of a trace
};

// `path` is decoded, and what follows /ui/api/.
DataRoute MatchData(std::string_view path);

}  // namespace nereid::console
