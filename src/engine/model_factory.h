// SPDX-License-Identifier: Apache-2.0
// What makes servable model versions. The life cycle knows this interface only, so that it can be
// tested without backends.
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

// Says whether a load is still wanted; an error ends it.
using CheckWanted = std::function<base::Status()>;

// One version of a model, ready to serve. Destroying it finalizes the instances and the model;
// nobody may use them any more by then. Thread-compatible.
class ServableModel {
 public:
  virtual ~ServableModel() = default;

  // Shared with model tables, which only name it and may keep it longer.
  const std::shared_ptr<core::Model>& model() const { return model_; }
  // How long it took to load; 0 for an ensemble, whose time is not worth telling.
  std::chrono::nanoseconds load_duration() const { return load_duration_; }

  // Whether instances may be added and removed while it serves.
  virtual bool can_change_instances() const = 0;
  // Brings the instances to what `source` says; requests go on meanwhile. The configuration as it
  // is then; an error, and nothing changed, when a new instance fails. Needs
  // can_change_instances(), a pin of the model, and that nobody else changes it.
  virtual base::Result<std::shared_ptr<const config::ModelConfig>> ChangeInstances(
      const repository::ModelSource& source, CheckWanted check_wanted) = 0;

 protected:
  ServableModel() = default;
  ServableModel(const ServableModel&) = delete;
  ServableModel& operator=(const ServableModel&) = delete;

  std::shared_ptr<core::Model> model_;
  std::chrono::nanoseconds load_duration_{0};
};

// Thread-safe.
class ModelFactory {
 public:
  virtual ~ModelFactory() = default;

  // Needs source.config.ok(). `check_wanted` is asked again and again until this returns.
  virtual base::Result<std::unique_ptr<ServableModel>> Load(const repository::ModelSource& source,
                                                            int64_t version,
                                                            CheckWanted check_wanted) const = 0;
  // The same for an ensemble. `models`: one for each step, of the version the step names.
  virtual base::Result<std::unique_ptr<ServableModel>> LoadEnsemble(
      const repository::ModelSource& source, int64_t version,
      const std::vector<std::shared_ptr<core::Model>>& models) const = 0;
};

}  // namespace nereid::engine
