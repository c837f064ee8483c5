// SPDX-License-Identifier: Apache-2.0
// Brings model versions up and down. The states of a version are those of version_states.h; what is
// decided elsewhere (ModelControl) is done here.
//
// A version that is ready stays so while another one is loaded in its place, and is replaced in one
// step when all versions of that load are there; if one of them fails, nothing changes. What is
// replaced or unloaded is taken apart (Teardown) once its last request has ended. Every change
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

// How models are loaded, whichever models they are.
struct LifeCycleOptions {
  unsigned load_threads = 4;  // versions that are loaded at the same time
  unsigned load_retries = 0;  // times that a failed load is tried again
  bool has_namespaces = false;
  // What failed is tried again with every look at the repositories, and told again only when
  // something about it is new.
  bool repeats_loads = false;
};

// Thread-safe. Whoever changes one model from several threads at once must order that: jobs and
// unloading of one model must not overlap.
class LifeCycle {
 public:
  // `factory` outlives it.
  LifeCycle(const ModelFactory& factory, LifeCycleOptions options);
  // Needs UnloadAll before.
  ~LifeCycle() = default;

  // Loads, several versions at once, and waits for it; a result for each job. Versions that are
  // ready and whose files and configuration are those of the source are left alone; where only the
  // instance groups differ, instances are added and removed in place. Those that the source's
  // version policy does not ask for go when the others are there. Blocks.
  std::vector<base::Status> Load(std::vector<LoadJob> jobs);
  // Refuses new requests for all versions of `ids`, and takes them apart as their last requests
  // end: ensembles before what they contain. Does not wait for that.
  void Unload(const std::set<ModelId>& ids);
  // The same for everything, waiting until `deadline`. What is unfinished then is left alone for
  // ever, and the life cycle must not be destroyed.
  Unfinished UnloadAll(base::TimePoint deadline);
  // Loads of models of that name that are in progress fail as soon as they can be given up: between
  // two instances, or two runs of a warm-up. What was ready before stays so.
  void CancelLoads(std::string_view name);
  // The same for all loads, also those that begin later.
  void CancelAllLoads();
  // With namespaces: the models that a name alone can mean from now on.
  void SetNamed(std::set<ModelId> ids);

  const ModelTable& Table() const { return table_.Read(); }
  // Pins for a request, by what a client names (ModelTable::Find).
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) const;
  // Pins for a step of an ensemble (ModelTable::FindForStep).
  base::Result<core::ModelHandle> FindForStep(std::string_view id_text, int64_t version) const;
  // The loaded version of that number, or the highest for -1; null when there is none.
  std::shared_ptr<core::Model> LoadedModel(const ModelId& id, int64_t version) const;

  // A version that is loaded, with what its statistics need. Holding it keeps the model from being
  // destroyed.
  struct Loaded {
    ModelId id;
    std::shared_ptr<core::Model> model;  // never null
    double load_seconds;                 // 0 for ensembles: theirs takes no time worth telling
  };
  // The configuration of a version, as its instances are now.
  std::shared_ptr<const config::ModelConfig> ConfigOf(const core::Model& model) const;
  // Every loaded version, for reading statistics.
  std::vector<Loaded> LoadedModels() const;

 private:
  // Works out what `load` has to do; an error when its versions cannot be served.
  base::Status Begin(LoadAttempt& load);
  LoadWork PlanLocked(const LoadAttempt& load, std::set<int64_t> wanted) NEREID_REQUIRES(mutex_);
  // Ends the loads that have nothing to do, and hands the others to the threads.
  void Start(const std::vector<LoadAttempt*>& loads, const std::set<ModelId>& ids);
  // The work of one version, and of the whole load after its last one.
  void LoadVersion(LoadAttempt& load, int64_t version);
  // Changes the instances of a version that is loaded.
  base::Status ChangeInstances(LoadAttempt& load, int64_t version);
  // All versions of the load are there or have failed.
  void End(LoadAttempt& load);
  void CommitLocked(const LoadAttempt& load, LoadAttempt::Results results, LoadedVersions& retired)
      NEREID_REQUIRES(mutex_);
  base::Status RollBackLocked(const LoadAttempt& load, LoadAttempt::Results results,
                              LoadedVersions& retired) NEREID_REQUIRES(mutex_);
  // Says in the log that the load of a version failed, where that is new.
  void TellFailure(const LoadAttempt& load, int64_t version, const base::Status& status);
  bool NoteFailure(const LoadAttempt& load, int64_t version, std::string reason);

  // Takes a loaded version out of service: UNLOADING from the next table on.
  void TakeLocked(const VersionKey& key, LoadedVersions& retired) NEREID_REQUIRES(mutex_);
  // Tells those who watch over the files of `versions`, which were ready, that these go, unless
  // other versions still use the files.
  void TellUnloading(const LoadedVersions& versions);
  void OnGone(const ModelId& id, const core::Model& model);
  // A table in which `changed` are as they are in states_.
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
  // The last members, because their threads use the others; loading hands over to unloading.
  Teardown teardown_;
  base::TaskPool load_pool_;
};

}  // namespace nereid::engine
