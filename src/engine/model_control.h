// SPDX-License-Identifier: Apache-2.0
// Decides which models are loaded: all that there are, those that the repositories hold at this
// moment (polling), or those that clients name (explicit control). A change is found (what was
// added, modified, removed), what it affects is worked out (ensembles with their parts), and the
// life cycle does it: first what goes, then models, then ensembles, inner ones first.
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
#include "repository/private_folder.h"
#include "repository/scanner.h"
#include "service/service.h"

namespace nereid::engine {

enum class ControlMode { kNone, kPoll, kExplicit };

struct ModelControlOptions {
  ControlMode mode = ControlMode::kNone;
  std::set<std::string> startup_models;  // in explicit mode; "*" alone: all
};

// Thread-safe. Operations on models that have nothing to do with each other run side by side,
// others one after the other. Everything here blocks.
class ModelControl {
 public:
  // Both outlive it.
  ModelControl(const repository::Scanner& scanner, LifeCycle& life_cycle,
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
  struct Info {
    std::shared_ptr<const repository::ModelSource> source;
    // Of the files that the last load which worked was made from; older than anything where the
    // next look is to find a change.
    repository::ModelTimestamp timestamp;
    repository::ModelTimestamp previous;  // what `timestamp` goes back to when the load fails
    bool is_wanted = true;                // asked for by name, not only as part of an ensemble
    base::Status load_status;             // of the last load
    bool is_invalid = false;              // an ensemble that does not fit what it contains
    std::string told;                     // what the log says of that
    uint64_t revision = 0;                // of `source` and `timestamp`; unique in this object
  };
  using Infos = std::map<ModelId, Info>;

  // What an operation is about to do, and the state that it leads to.
  struct Plan {
    explicit Plan(const Infos& now) : infos(now) {}
    Infos infos;
    std::set<ModelId> changed;  // added or modified: to be loaded
    std::set<ModelId> removed;
    std::set<ModelId> touched;   // looked at, and not to be changed
    std::set<ModelId> affected;  // changed, removed, and the ensembles that contain any of those
    std::map<ModelId, std::string> refused;  // not fit to be loaded, and why
    bool all_polled = true;
  };

  // The files of a load request, as they lie in a folder of their own, or why there is none.
  using Files = base::Result<std::shared_ptr<repository::PrivateFolder>>;

  // Plans on the grounds of `now`. The repositories are read, files may be fetched and agents
  // asked.
  Plan PlanPoll(const Infos& now) const;
  Plan PlanLoad(const std::set<std::string>& names, const service::LoadOptions& options,
                const Files& files, const Infos& now) const;
  static Plan PlanUnload(const std::string& name, bool with_parts, const Infos& now);
  void PollName(const std::string& name, const service::LoadOptions& options, const Infos& now,
                Plan& plan) const;
  void PollFiles(const std::string& name, const service::LoadOptions& options, const Files& files,
                 const Infos& now, Plan& plan) const;
  static void Accept(repository::ModelSource source, repository::ModelTimestamp timestamp,
                     const Infos& now, Plan& plan);

  // Makes a plan without the lock, waits until no other operation is at its models, and makes it
  // the state of affairs; when another one changed their state meanwhile, a new plan is made. The
  // plan without its infos; none when the server stops.
  template <typename MakePlan>
  std::optional<Plan> Begin(MakePlan make_plan);
  bool IsBusyLocked(const Plan& plan) const NEREID_REQUIRES(mutex_);
  // Whether the plan's models are still those of `then`.
  bool IsCurrentLocked(const Plan& plan, const Infos& then) const NEREID_REQUIRES(mutex_);
  void CommitLocked(Plan& plan, Infos infos) NEREID_REQUIRES(mutex_);
  // The present state with the plan's changes. Fills plan.affected.
  Infos ApplyLocked(Plan& plan) const NEREID_REQUIRES(mutex_);
  // The work of a plan, without the lock.
  void Execute(const Plan& plan);
  void End(const Plan& plan);

  // Ensembles of the plan that no load can save go with what is removed.
  void UnloadLost(const std::vector<EnsembleEntry>& ensembles, const Plan& plan);
  void LoadPlain(const Plan& plan);
  void LoadEnsembles(const std::vector<EnsembleEntry>& ensembles);
  base::Status CheckPart(const EnsembleEntry& entry, const ModelId& part,
                         const std::set<int64_t>& versions) const;
  base::Result<LoadJob> PrepareEnsemble(const EnsembleEntry& entry) const;
  void RunJobs(std::vector<LoadJob> jobs);
  void SetInvalid(const ModelId& id, base::Status status);
  void SetValid(const ModelId& id);

  std::shared_ptr<const repository::ModelSource> SourceOf(const ModelId& id) const;
  static ModelSources SourcesOf(const Infos& infos);
  // What is wrong with the models of these names after the plan for them was carried out, and
  // before its End.
  base::Status CheckLoaded(const std::set<std::string>& names, const Plan& plan) const;
  // The answer to a load by name, likewise.
  base::Status CheckLoad(const std::string& name, const Plan& plan) const;
  base::Status CheckAllReady() const;

  const repository::Scanner& scanner_;
  LifeCycle& life_cycle_;
  const ModelControlOptions options_;
  mutable base::Mutex mutex_;
  base::CondVar ended_;
  Infos infos_ NEREID_GUARDED_BY(mutex_);
  std::map<ModelId, std::string> refused_
      NEREID_GUARDED_BY(mutex_);                      // by the last look, for the index
  std::set<ModelId> busy_ NEREID_GUARDED_BY(mutex_);  // models of operations in progress
  size_t operations_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t last_revision_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::engine
