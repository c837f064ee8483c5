// SPDX-License-Identifier: Apache-2.0
// What the engine, which decides which models to load, needs from the repositories. It is an
// interface so that those decisions can be tested without repositories.
#pragma once

#include <string>
#include <vector>

#include "repository/model_source.h"

namespace nereid::repository {

// Thread-safe. Every method may take long, because a repository may be remote.
class ModelScanner {
 public:
  virtual ~ModelScanner() = default;

  virtual Listing List() const = 0;
  // Returns all models of all repositories except those of `known` that did not change: for these
  // nothing is read, no agent is asked and no file is fetched. An error of one model is in its own
  // ModelSource.
  virtual ScanResult ScanAll(const KnownModels& known) const = 0;
  // Returns the places of all models of that name, which can be several only with namespaces. Empty
  // if there is none, or if it is ambiguous, which is logged. REQUIRES: the name is valid.
  virtual std::vector<ModelPlace> Find(const std::string& name) const = 0;
  virtual ModelTimestamp TimestampOf(const ModelPlace& place) const = 0;
  // Reads the configuration of one model and brings its files to this machine.
  virtual ModelSource Examine(const ModelPlace& place, const Overrides& overrides) const = 0;
};

}  // namespace nereid::repository
