// SPDX-License-Identifier: Apache-2.0
// Sees to it that the right models are loaded: all that there are, those that the repositories hold
// at this moment (polling), or those that clients name (explicit control). Each operation is
// planned (model_plan.h), waits for those that concern the same models, and is carried out by the
// life cycle: first what goes, then models, then ensembles, inner ones first.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/ensemble_order.h"
#include "engine/life_cycle.h"
#include "engine/model_plan.h"
#include "repository/model_scanner.h"
#include "service/service.h"

namespace nereid::engine {

enum class ControlMode { kNone, kPoll, kExplicit };

// What decides which models are loaded: the repositories alone, looked at once or again and again,
// or requests.
struct ModelControlOptions {
  ControlMode mode = ControlMode::kNone;
  std::set<std::string> startup_models;  // in explicit mode; "*" alone: all
};

// Thread-safe. Operations on models that have nothing to do with each other run side by side,
// others one after the other. Everything here blocks.
class ModelControl {
 public:
  // Both outlive it.
  ModelControl(const repository::ModelScanner& scanner, LifeCycle& life_cycle,
               ModelControlOptions options);

  // Loads what is to be there at the start. An error when anything of it failed; what works is
  // loaded.
  base::Status Start();
  // Brings the models to what the repositories hold now. For one thread, in poll mode.
  void Poll();
  // Explicit control. Texts and codes of errors are Triton's.
  base::Status Load(const std::string& name, const service::LoadOptions& options);
  base::Status Unload(const std::string& name, bool with_parts);
  // What lies in the repositories, and what is loaded besides, with states.
  std::vector<service::IndexEntry> Index(bool only_ready) const;
  // Refuses operations from now on and waits for those in progress; false when `deadline` passes
  // first.
  bool Stop(base::TimePoint deadline);

 private:
  // Makes a plan without the lock, waits until no other operation is at its models, and makes it
  // the state of affairs; when another one changed their state meanwhile, a new plan is made. The
  // plan without its infos; none when the server stops.
  template <typename MakePlan>
  std::optional<ModelPlan> Begin(MakePlan make_plan);
  // The same for an unload, which is planned under the lock: it reads nothing, and which parts of
  // an ensemble nobody uses any more depends on all the models that there are.
  std::optional<ModelPlan> BeginUnload(const std::string& name, bool with_parts);
  void CommitLocked(ModelPlan& plan, ModelInfos infos) NEREID_REQUIRES(mutex_);
  // The work of a plan, without the lock.
  void Execute(const ModelPlan& plan);
  void End(const ModelPlan& plan);

  // Ensembles of the plan that no load can save go with what is removed.
  void UnloadLost(const std::vector<EnsembleEntry>& ensembles, const ModelPlan& plan);
  void LoadPlain(const ModelPlan& plan);
  void LoadEnsembles(const std::vector<EnsembleEntry>& ensembles);
  base::Status CheckPart(const EnsembleEntry& entry, const ModelId& part,
                         const std::set<int64_t>& versions) const;
  base::Result<LoadJob> PrepareEnsemble(const EnsembleEntry& entry) const;
  void RunJobs(std::vector<LoadJob> jobs);
  void SetInvalid(const ModelId& id, base::Status status);
  void SetValid(const ModelId& id);

  std::shared_ptr<const repository::ModelSource> SourceOf(const ModelId& id) const;
  // What is wrong with the models of these names after the plan for them was carried out, and
  // before its End.
  base::Status CheckLoaded(const std::set<std::string>& names, const ModelPlan& plan) const;
  // The answer to a load by name, likewise.
  base::Status CheckLoad(const std::string& name, const ModelPlan& plan) const;
  base::Status CheckAllReady() const;

  const repository::ModelScanner& scanner_;
  LifeCycle& life_cycle_;
  const ModelControlOptions options_;
  mutable base::Mutex mutex_;
  base::CondVar ended_;
  ModelInfos infos_ NEREID_GUARDED_BY(mutex_);
  std::map<ModelId, std::string> refused_
      NEREID_GUARDED_BY(mutex_);                      // by the last look, for the index
  std::set<ModelId> busy_ NEREID_GUARDED_BY(mutex_);  // models of operations in progress
  size_t operations_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t last_revision_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::engine
