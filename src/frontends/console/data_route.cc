// SPDX-License-Identifier: Apache-2.0
#include "console/data_route.h"

namespace nereid::console {
namespace {

using access::Scope;
using common::Category;

// One part of a path, and what follows its slash.
struct Split {
  std::string_view first;
  std::string_view rest;
  bool has_rest = false;
};

Split SplitPath(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {path, {}};
  return {path.substr(0, slash), path.substr(slash + 1), true};
}

// The paths below models/.
DataRoute MatchModel(std::string_view path) {
  const Split split = SplitPath(path);
  DataRoute route{.scope = Scope::kMetadata, .model = split.first};
  if (split.first.empty()) {
    if (!split.has_rest) route.kind = DataKind::kModels;
  } else if (!split.has_rest) {
    route.kind = DataKind::kModel;
  } else if (split.rest == "sequences") {
    // Whoever knows the id of a sequence can join the sequence, so metadata is not enough.
    route.kind = DataKind::kSequences;
    route.scope = Scope::kTraceLog;
  } else if (split.rest == "explanation") {
    route.kind = DataKind::kExplanation;
    route.category = Category::kModelConfig;
  }
  return route;
}

}  // namespace

DataRoute MatchData(std::string_view path) {
  const Split split = SplitPath(path);
  if (split.first == "models") return MatchModel(split.rest);
  if (split.first == "traces" && !split.rest.empty()) {
    return {.kind = DataKind::kTrace,
            .scope = Scope::kTraceLog,
            .category = Category::kTrace,
            .is_about_all = true,
            .id = split.rest};
  }
  if (split.has_rest) return {};
  if (split.first == "history") return {.kind = DataKind::kHistory, .scope = Scope::kMetrics};
  if (split.first == "live") return {.kind = DataKind::kLive, .scope = Scope::kMetrics};
  if (split.first == "log") {
    return {.kind = DataKind::kLog,
            .scope = Scope::kTraceLog,
            .category = Category::kLogging,
            .is_about_all = true};
  }
  if (split.first == "traces") {
    return {.kind = DataKind::kTraces,
            .scope = Scope::kTraceLog,
            .category = Category::kTrace,
            .is_about_all = true};
  }
  return {};
}

}  // namespace nereid::console
