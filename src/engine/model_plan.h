// SPDX-License-Identifier: Apache-2.0
// What an operation on the models is about to do: which are to be loaded, which are to go, and
// which ensembles that concerns. Planning only compares what is known of the models with what lies
// in the repositories; ModelControl carries plans out.
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

// What is known of one model that is loaded, or was to be. A value.
struct ModelInfo {
  std::shared_ptr<const repository::ModelSource> source;
  // Of the files that the last load which worked was made from; older than anything where the next
  // look is to find a change.
  repository::ModelTimestamp timestamp;
  repository::ModelTimestamp previous;  // what `timestamp` goes back to when the load fails
  bool is_wanted = true;                // asked for by name, not only as part of an ensemble
  base::Status load_status;             // of the last load
  bool is_invalid = false;              // an ensemble that does not fit what it contains
  std::string told;                     // what the log says of that
  uint64_t revision = 0;                // differs after each change of `source` or `timestamp`
};
using ModelInfos = std::map<ModelId, ModelInfo>;

// A value.
struct ModelPlan {
  ModelInfos infos;           // of the models in `changed` and `touched`; others may be there
  std::set<ModelId> changed;  // added or modified: to be loaded
  std::set<ModelId> removed;
  std::set<ModelId> touched;   // looked at, and not to be changed
  std::set<ModelId> affected;  // changed, removed, and the ensembles that contain any of those
  // What ensembles in `changed` and `removed` consisted of before. Until the plan is carried out,
  // requests to these ensembles need it.
  std::set<ModelId> held;
  std::map<ModelId, std::string> refused;  // not fit to be loaded, and why
  bool all_polled = true;                  // everything that was looked for was found fit
};

// The files of a load request, as they lie in a folder of their own, or why there is none. Null
// where the request brings no files.
using LoadFiles = base::Result<std::shared_ptr<repository::PrivateFolder>>;

// A request to load the models of some names.
struct LoadOrder {
  std::set<std::string> names;
  service::LoadOptions options;
  LoadFiles files = std::shared_ptr<repository::PrivateFolder>();
  int64_t wall_time_ns = 0;  // when it came
};

// The plan that brings the models to what the repositories hold. Blocks, as the scanner does.
ModelPlan PlanPoll(const repository::ModelScanner& scanner, const ModelInfos& now);
// The plan that loads the models of an order, with what the ensembles among them contain. Blocks.
ModelPlan PlanLoad(const repository::ModelScanner& scanner, const LoadOrder& order,
                   const ModelInfos& now);
// The plan that unloads the models of that name, with the parts of ensembles that nobody else asked
// for or uses.
ModelPlan PlanUnload(const std::string& name, bool with_parts, const ModelInfos& now);

// The state `now` with the plan's changes. Fills plan.affected and plan.held.
ModelInfos ApplyPlan(const ModelInfos& now, ModelPlan& plan);
// Whether the plan's models are in `now` what they were in `then`, when the plan was made.
bool IsCurrent(const ModelPlan& plan, const ModelInfos& then, const ModelInfos& now);
// The models that no other plan may concern while this one is carried out. After ApplyPlan.
std::set<ModelId> Claims(const ModelPlan& plan);
// Whether the plan claims any of `ids`. After ApplyPlan.
bool Concerns(const ModelPlan& plan, const std::set<ModelId>& ids);

ModelSources SourcesOf(const ModelInfos& infos);

}  // namespace nereid::engine
