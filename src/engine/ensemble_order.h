// SPDX-License-Identifier: Apache-2.0
// Which ensembles depend on which models, and the order in which they can be loaded. Pure logic on the
// scanned configurations.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "repository/scanner.h"

namespace nereid::engine {

// One more ensemble inside the other than anybody needs, few enough for any thread's stack: a request
// goes down all levels at once.
inline constexpr int kMaxEnsembleDepth = 64;

struct EnsembleEntry {
  std::string name;
  base::Status status;  // why it cannot be loaded, as far as the configurations tell
  int depth = 1;        // 1: it contains no ensemble
  std::map<std::string, std::set<int64_t>> models;  // what its steps name, with the versions
};

// Every ensemble of `sources` whose configuration is valid, each after those it contains. Status texts
// are Triton's: models that are missing, circular dependencies.
std::vector<EnsembleEntry> OrderEnsembles(
    const std::map<std::string, repository::ModelSource>& sources);

}  // namespace nereid::engine
