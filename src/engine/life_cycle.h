// SPDX-License-Identifier: Apache-2.0
// Loads and unloads model versions. The states of a version are those of version_states.h;
// decisions are made elsewhere (ModelControl) and carried out here.
//
// A version that is ready stays so while another one is loaded in its place, and is replaced
// atomically when all versions of that load are ready; if one of them fails, nothing changes.
// Replaced and unloaded versions are torn down (Teardown) after their last request. Every change
// publishes a new ModelTable.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/task_pool.h"
#include "engine/failure_history.h"
#include "engine/load_attempt.h"
#include "engine/loaded_version.h"
#include "engine/model_factory.h"
#include "engine/model_table.h"
#include "engine/published.h"
#include "engine/teardown.h"
#include "engine/version_key.h"
#include "engine/version_states.h"

namespace nereid::engine {

using repository::ModelId;

// The settings for loading, which apply to all models.
struct LifeCycleOptions {
  unsigned load_threads = 4;  // versions that are loaded at the same time
  unsigned load_retries = 0;  // how often a failed load is retried
  bool has_namespaces = false;
  // A failed load is repeated after every scan of the repositories, and logged only if something
  // about it is new.
  bool repeats_loads = false;
};

// The life cycle of all models. Thread-safe, except that loads and unloads of the same model must
// not overlap.
class LifeCycle {
 public:
  // `factory` outlives it.
  LifeCycle(const ModelFactory& factory, LifeCycleOptions options);
  // REQUIRES: UnloadAll has left nothing unfinished.
  ~LifeCycle() = default;

  // Loads several versions at once and waits for them; returns a result for each job. Versions that
  // are ready with the files and configuration of the source are left alone; if only the instance
  // groups differ, instances are added and removed in place. Versions that the source's version
  // policy does not select are unloaded after the others are loaded. Blocks.
  std::vector<base::Status> Load(std::vector<LoadJob> jobs);
  // Refuses new requests for all versions of `ids`, and tears each one down after its last request:
  // ensembles before their models. Does not wait. Rules that control calls have changed are
  // forgotten, unless `rules` says otherwise.
  enum class Rules : bool { kForgotten, kKept };
  void Unload(const std::set<ModelId>& ids, Rules rules = Rules::kForgotten);
  // Unloads everything and waits until `deadline`. Unfinished work is abandoned, and the life cycle
  // must then not be destroyed.
  Unfinished UnloadAll(base::TimePoint deadline);
  // Refuses requests for all versions of `ids` until Unload, if nothing uses or may still use one
  // of them (pins, sequences, requests of ensembles); otherwise returns false, without a change.
  bool HoldIdle(const std::set<ModelId>& ids);
  // Waits until the unloaded and replaced versions of `ids` are destroyed; false after `deadline`.
  bool WaitUntilGone(const std::set<ModelId>& ids, base::TimePoint deadline);
  // Cancels the loads of models of that name that are in progress. They fail at the next
  // opportunity: between two instances, or two runs of a warm-up. Ready versions stay ready.
  void CancelLoads(std::string_view name);
  // Cancels all loads, including those that begin later.
  void CancelAllLoads();
  // With namespaces: sets the models that a name without a namespace can refer to.
  void SetNamed(std::set<ModelId> ids);

  // Changes the rules by which requests to a model find their version, in one step. NotFound for a
  // model that clients cannot name, Unavailable for versions that are not ready, InvalidArgument
  // for rules that make no sense.
  base::Status ChangeTraffic(std::string_view name, const service::TrafficChange& change);

  const ModelTable& Table() const { return table_.Read(); }
  // Pins a model for a request that names it (ModelTable::Find).
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) const;
  // Pins any version of a model that is ready, whatever its rules say; empty if there is none.
  core::ModelHandle FindAny(std::string_view name) const;
  // Pins a model for a step of an ensemble (ModelTable::FindForStep).
  base::Result<core::ModelHandle> FindForStep(std::string_view id_text, int64_t version) const;
  // Returns the loaded version of that number, or the highest for -1; null if there is none.
  std::shared_ptr<core::Model> LoadedModel(const ModelId& id, int64_t version) const;
  // Whether versions of the job's ensemble are loaded, all of them made of the parts of the job.
  bool HasSameParts(const LoadJob& job) const;

  // A loaded version with its load time. Holding it keeps the model from being destroyed.
  struct Loaded {
    ModelId id;
    std::shared_ptr<core::Model> model;  // never null
    double load_seconds;                 // 0 for ensembles, whose time is negligible
  };
  // Returns the configuration of a version with its current instances.
  std::shared_ptr<const config::ModelConfig> ConfigOf(const core::Model& model) const;
  // Returns the source of a version; null if it is not loaded.
  std::shared_ptr<const repository::ModelSource> SourceOf(const core::Model& model) const;
  // Returns every loaded version, for reading statistics.
  std::vector<Loaded> LoadedModels() const;
  // Returns the same versions without what else is known of them.
  std::vector<std::shared_ptr<core::Model>> Models() const;

 private:
  // Determines the work of `load`; fails if its versions cannot be served.
  base::Status Begin(LoadAttempt& load);
  LoadWork PlanLocked(const LoadAttempt& load, std::set<int64_t> wanted) NEREID_REQUIRES(mutex_);
  // Ends the loads without work, and posts the others to the threads.
  void Start(const std::vector<LoadAttempt*>& loads, const std::set<ModelId>& ids);
  // Does the work of one version; after the last one, also that of the whole load.
  void LoadVersion(LoadAttempt& load, int64_t version);
  // Changes the instances of a loaded version.
  base::Status ChangeInstances(LoadAttempt& load, int64_t version);
  // Called when all versions of the load are loaded or have failed.
  void End(LoadAttempt& load);
  void CommitLocked(const LoadAttempt& load, LoadAttempt::Results results, LoadedVersions& retired)
      NEREID_REQUIRES(mutex_);
  base::Status RollBackLocked(const LoadAttempt& load, LoadAttempt::Results results,
                              LoadedVersions& retired) NEREID_REQUIRES(mutex_);
  // Logs that the load of a version failed, unless that is not new.
  void TellFailure(const LoadAttempt& load, int64_t version, const base::Status& status);
  bool NoteFailure(const LoadAttempt& load, int64_t version, std::string reason);

  // Takes a loaded version out of service: its state is UNLOADING from the next table on.
  void TakeLocked(const VersionKey& key, LoadedVersions& retired) NEREID_REQUIRES(mutex_);
  // Tells the owners of the files of `versions`, which were ready, that these are unloaded, unless
  // other versions still use the files.
  void TellUnloading(const LoadedVersions& versions);
  void OnGone(const ModelId& id, const core::Model& model);
  // Publishes a table in which the records of `changed` are those of states_.
  void PublishLocked(const std::set<ModelId>& changed) NEREID_REQUIRES(mutex_);

  const ModelFactory& factory_;
  const LifeCycleOptions options_;
  Published<ModelTable> table_;
  mutable base::Mutex mutex_;
  base::CondVar load_ended_;
  VersionStates states_ NEREID_GUARDED_BY(mutex_);
  std::map<VersionKey, std::unique_ptr<LoadedVersion>> loaded_ NEREID_GUARDED_BY(mutex_);
  FailureHistory failures_ NEREID_GUARDED_BY(mutex_);
  std::set<LoadAttempt*> loads_ NEREID_GUARDED_BY(mutex_);  // in progress
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
  // The last members, because their threads use the others. Loading must end before unloading,
  // because it retires versions.
  Teardown teardown_;
  base::TaskPool load_pool_;
};

}  // namespace nereid::engine
