// SPDX-License-Identifier: Apache-2.0
// What deciding which models to load needs to know of the repositories, so that it can be tested
// without any.
#pragma once

#include <string>
#include <vector>

#include "repository/model_source.h"

namespace nereid::repository {

// Thread-safe. Everything here may take long: repositories may be far away.
class ModelScanner {
 public:
  virtual ~ModelScanner() = default;

  virtual Listing List() const = 0;
  // All models of all repositories but those of `known` that did not change since: nothing is read,
  // no agent is asked and no file fetched for them. A fault of one model is in its own ModelSource.
  virtual ScanResult ScanAll(const KnownModels& known) const = 0;
  // Where the models of that name lie: several only with namespaces. None when there is none, or
  // when it is ambiguous, which is logged. Needs a valid name.
  virtual std::vector<ModelPlace> Find(const std::string& name) const = 0;
  virtual ModelTimestamp TimestampOf(const ModelPlace& place) const = 0;
  // One model: its configuration is read, its files are brought to this machine.
  virtual ModelSource Examine(const ModelPlace& place, const Overrides& overrides) const = 0;
};

}  // namespace nereid::repository
