// SPDX-License-Identifier: Apache-2.0
// Plans of operations on the models: which ones to load, which to unload, and which ensembles are
// affected. Planning only compares the known models with the repositories; ModelControl carries
// plans out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/status.h"
#include "engine/ensemble_order.h"
#include "repository/model_scanner.h"
#include "repository/private_folder.h"
#include "service/service.h"

namespace nereid::engine {

// What is known of one model that is loaded or failed to load. A value type.
struct ModelInfo {
  std::shared_ptr<const repository::ModelSource> source;
  // The time of the files of the last successful load; older than any file if the next scan must
  // find a change.
  repository::ModelTimestamp timestamp;
  repository::ModelTimestamp previous;  // restored to `timestamp` if the load fails
  bool is_wanted = true;                // loaded by name, not only as part of an ensemble
  // Whether `source` has a configuration or files that came with a load request. They are lost when
  // the model is unloaded.
  bool is_overridden = false;
  bool was_overridden = false;  // restored to `is_overridden` if the load fails
  base::Status load_status;     // of the last load
  bool is_invalid = false;      // an ensemble that does not fit its models
  std::string told;             // what was logged about that
  uint64_t revision = 0;        // differs after each change of `source` or `timestamp`
};
using ModelInfos = std::map<ModelId, ModelInfo>;

// A plan. A value type.
struct ModelPlan {
  ModelInfos infos;           // of the models in `changed` and `touched`; may contain others
  std::set<ModelId> changed;  // added or modified: to be loaded
  std::set<ModelId> removed;
  std::set<ModelId> touched;   // scanned, and left unchanged
  std::set<ModelId> affected;  // changed, removed, and the ensembles that contain any of those
  // The previous parts of ensembles in `changed` and `removed`. Requests to these ensembles need
  // them until the plan is carried out.
  std::set<ModelId> held;
  std::map<ModelId, std::string> refused;  // not loadable, and why
  std::set<std::string> missing;           // names that were looked for and that no repository has
  bool keeps_rules = false;                // of what it unloads, which will be loaded again
  bool all_polled = true;  // everything that was requested was found and is loadable
};

// The folder with the files of a load request, or why it could not be made. Null if the request has
// no files.
using LoadFiles = base::Result<std::shared_ptr<repository::PrivateFolder>>;

// A request to load the models of some names.
struct LoadOrder {
  std::set<std::string> names;
  service::LoadOptions options;
  LoadFiles files = std::shared_ptr<repository::PrivateFolder>();
  int64_t wall_time_ns = 0;  // when the request arrived
};

// Plans to bring the models to the state of the repositories. Blocks, like the scanner.
ModelPlan PlanPoll(const repository::ModelScanner& scanner, const ModelInfos& now);
// Plans to load the models of a request, including the parts of ensembles among them. Blocks.
ModelPlan PlanLoad(const repository::ModelScanner& scanner, const LoadOrder& order,
                   const ModelInfos& now);
// Plans to unload the models of that name and, with `with_parts`, the parts of ensembles that no
// other model uses and that were not loaded by name.
ModelPlan PlanUnload(const std::string& name, bool with_parts, const ModelInfos& now);

// Returns the state `now` with the plan's changes. Fills plan.affected and plan.held.
ModelInfos ApplyPlan(const ModelInfos& now, ModelPlan& plan);
// Whether the plan's models are the same in `now` as in `then`, when the plan was made.
bool IsCurrent(const ModelPlan& plan, const ModelInfos& then, const ModelInfos& now);
// Returns the models that other plans must not concern while this one is carried out. REQUIRES:
// ApplyPlan was called.
std::set<ModelId> Claims(const ModelPlan& plan);
// Whether the plan claims any of `ids`. REQUIRES: ApplyPlan was called.
bool Concerns(const ModelPlan& plan, const std::set<ModelId>& ids);

ModelSources SourcesOf(const ModelInfos& infos);

}  // namespace nereid::engine
