// SPDX-License-Identifier: Apache-2.0
// Decides which models are loaded: all in the repositories at start-up, their current content
// (polling), or those that clients name (explicit control; on demand, OnDemand names them). Each
// operation is planned (model_plan.h), waits for operations on the same models, and is carried out
// by the life cycle: first it unloads, then it loads models, then ensembles, inner ones first.
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

// The values of --model-control-mode.
enum class ControlMode { kNone, kPoll, kExplicit, kOnDemand };

// What determines which models are loaded: the repositories, scanned once or repeatedly, or the
// requests of clients.
struct ModelControlOptions {
  ControlMode mode = ControlMode::kNone;
  // In explicit mode; "*" alone: all. On demand, OnDemand loads them.
  std::set<std::string> startup_models;
};

// Controls the models of one server. Thread-safe. Operations on unrelated models run concurrently,
// others one after the other. All operations block.
class ModelControl {
 public:
  // `scanner` and `life_cycle` outlive this.
  ModelControl(const repository::ModelScanner& scanner, LifeCycle& life_cycle,
               ModelControlOptions options);

  // Loads the models for start-up. Fails if any of them failed; the others are loaded.
  base::Status Start();
  // Brings the loaded models to the state of the repositories. Called by one thread, in poll mode.
  void Poll();
  // Explicit control. Error texts and codes are Triton's.
  base::Status Load(const std::string& name, const service::LoadOptions& options);
  base::Status Unload(const std::string& name, bool with_parts);
  // Unloads the model with its parts and returns what was unloaded; nothing, without a change, if
  // any of that is in use, or the model is not loaded. Their rules for versions stay, because
  // nobody has asked for this.
  std::set<ModelId> UnloadIdle(const std::string& name);
  // Returns the names of the models in the steps of an ensemble, and of the ensembles among them;
  // empty for other models.
  std::set<std::string> PartsOf(const std::string& name) const;
  // Whether the model is loaded with a configuration or files that came with a load request, which
  // the next load after an unload would not bring back. False for models in namespaces.
  bool IsOverridden(const std::string& name) const;
  // Returns the models in the repositories and any other loaded ones, with their states.
  std::vector<service::IndexEntry> Index(bool only_ready) const;
  // Refuses further operations and waits for those in progress; returns false if `deadline` passes
  // first.
  bool Stop(base::TimePoint deadline);

 private:
  // Makes a plan without holding the lock, waits until no other operation concerns its models, and
  // commits it. If another operation changed their state in the meantime, a new plan is made.
  // Returns the plan without its infos, or nothing if the server stops.
  template <typename MakePlan>
  std::optional<ModelPlan> Begin(MakePlan make_plan);
  // Like Begin for an unload, which is planned under the lock: planning reads no files, and which
  // parts of an ensemble are no longer used depends on all models. With `only_idle`, the models are
  // held in the same step, and nothing is returned if one is in use.
  std::optional<ModelPlan> BeginUnload(const std::string& name, bool with_parts, bool only_idle);
  // Exchanges what is known for `infos`. The sources among what was known may end with it, which
  // takes time for files and calls agents: the caller destroys it without the lock.
  void CommitLocked(ModelPlan& plan, ModelInfos& infos) NEREID_REQUIRES(mutex_);
  // Carries out a plan, without the lock.
  void Execute(const ModelPlan& plan);
  void End(const ModelPlan& plan);

  // Unloads the ensembles that no load of the plan can make valid, and the removed models.
  void UnloadLost(const std::vector<EnsembleEntry>& ensembles, const ModelPlan& plan);
  void LoadPlain(const ModelPlan& plan);
  // Loads the ensembles that are new or modified, or whose models are others than before.
  void LoadEnsembles(const std::vector<EnsembleEntry>& ensembles, const ModelPlan& plan);
  base::Status CheckPart(const EnsembleEntry& entry, const ModelId& part,
                         const std::set<int64_t>& versions) const;
  base::Result<LoadJob> PrepareEnsemble(const EnsembleEntry& entry) const;
  void RunJobs(std::vector<LoadJob> jobs);
  void SetInvalid(const ModelId& id, base::Status status);
  void SetValid(const ModelId& id);

  // Whether models are loaded and unloaded by name.
  bool LoadsByName() const;
  std::shared_ptr<const repository::ModelSource> SourceOf(const ModelId& id) const;
  // Returns the errors of the models of these names. Called between the execution of the plan and
  // its End.
  base::Status CheckLoaded(const std::set<std::string>& names, const ModelPlan& plan) const;
  // Returns the result of a load by name. Called at the same point as CheckLoaded.
  base::Status CheckLoad(const std::string& name, const ModelPlan& plan) const;
  base::Status CheckAllReady() const;

  const repository::ModelScanner& scanner_;
  LifeCycle& life_cycle_;
  const ModelControlOptions options_;
  mutable base::Mutex mutex_;
  base::CondVar ended_;
  ModelInfos infos_ NEREID_GUARDED_BY(mutex_);
  std::map<ModelId, std::string> refused_
      NEREID_GUARDED_BY(mutex_);                      // from the last scan, for the index
  std::set<ModelId> busy_ NEREID_GUARDED_BY(mutex_);  // models of operations in progress
  size_t operations_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t last_revision_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::engine
