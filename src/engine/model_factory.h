// SPDX-License-Identifier: Apache-2.0
// The interface that makes servable model versions. The life cycle knows only this, so that it can
// be tested without backends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/model.h"
#include "repository/model_source.h"

namespace nereid::engine {

// Returns an error when a load is no longer wanted, which ends it.
using CheckWanted = std::function<base::Status()>;

// One version of a model, ready to serve. Destroying it finalizes the instances and the model,
// which must not be in use any more. Thread-compatible.
class ServableModel {
 public:
  virtual ~ServableModel() = default;

  // Shared with model tables, which only refer to it and may keep it longer.
  const std::shared_ptr<core::Model>& model() const { return model_; }
  // How long loading took; 0 for an ensemble, whose time is negligible.
  std::chrono::nanoseconds load_duration() const { return load_duration_; }

  // Whether instances can be added and removed while it serves.
  virtual bool can_change_instances() const = 0;
  // Brings the instances to the state of `source` while requests continue. Returns the new
  // configuration. If a new instance fails, returns its error and nothing is changed. REQUIRES:
  // can_change_instances(), a pin of the model, and no concurrent change.
  virtual base::Result<std::shared_ptr<const config::ModelConfig>> ChangeInstances(
      const repository::ModelSource& source, CheckWanted check_wanted) = 0;

 protected:
  ServableModel() = default;
  ServableModel(const ServableModel&) = delete;
  ServableModel& operator=(const ServableModel&) = delete;

  std::shared_ptr<core::Model> model_;
  std::chrono::nanoseconds load_duration_{0};
};

// Loads models and ensembles. Thread-safe.
class ModelFactory {
 public:
  virtual ~ModelFactory() = default;

  // Loads a version. `check_wanted` is called repeatedly until this returns. REQUIRES:
  // source.config.ok().
  virtual base::Result<std::unique_ptr<ServableModel>> Load(const repository::ModelSource& source,
                                                            int64_t version,
                                                            CheckWanted check_wanted) const = 0;
  // Like Load for an ensemble. `models` has one model for each step, in the version that the step
  // names.
  virtual base::Result<std::unique_ptr<ServableModel>> LoadEnsemble(
      const repository::ModelSource& source, int64_t version,
      const std::vector<std::shared_ptr<core::Model>>& models) const = 0;
};

}  // namespace nereid::engine
