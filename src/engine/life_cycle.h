// SPDX-License-Identifier: Apache-2.0
// Which model versions exist, in which state, and the work of bringing them up and down. The states
// of a version and the ways between them:
//
//   (none) -> LOADING -> READY -> UNLOADING -> UNAVAILABLE "unloaded"
//                    \-> UNAVAILABLE "<why>"
//
// A version that is ready stays so while another one is loaded in its place, and is replaced in one
// step when all versions of that load are there; if one of them fails, nothing changes. What is
// replaced or unloaded is taken apart on a thread of the life cycle once its last request has
// ended. Every change publishes a new ModelTable.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/task_pool.h"
#include "config/complete.h"
#include "engine/ensemble_order.h"
#include "engine/model_loader.h"
#include "engine/model_table.h"
#include "engine/published.h"
#include "repository/scanner.h"

namespace nereid::engine {

struct LifeCycleOptions {
  unsigned load_threads = 4;  // versions that are loaded at the same time
  unsigned load_retries = 0;  // times that a failed load is tried again
  bool has_namespaces = false;
  // What failed is tried again with every look at the repositories, and told again only when
  // something about it is new.
  bool repeats_loads = false;
};

// One model to be brought to what its source says.
struct LoadJob {
  std::shared_ptr<const repository::ModelSource> source;
  // Of an ensemble: how deep it is, and the model of each step.
  int ensemble_depth = 0;
  std::vector<std::shared_ptr<core::Model>> parts;
};

// What a stop did not wait for.
struct Unfinished {
  size_t busy_versions = 0;       // versions that still have requests
  std::vector<std::string> work;  // everything, one piece of work each, for people

  bool empty() const { return work.empty(); }
};

// Thread-safe. Whoever changes one model from several threads at once must order that: jobs and
// unloading of one model must not overlap.
class LifeCycle {
 public:
  // `loader` outlives it.
  LifeCycle(const ModelLoader& loader, LifeCycleOptions options);
  // Needs UnloadAll before.
  ~LifeCycle();

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
  struct Key {
    ModelId id;
    int64_t version;
    auto operator<=>(const Key&) const = default;
  };
  using Versions = std::vector<std::unique_ptr<LoadedVersion>>;

  // One job on its way.
  struct Attempt {
    LoadJob job;
    std::atomic<bool> is_cancelled{false};
    ModelId id;
    std::set<int64_t> wanted;  // versions that are to be there afterwards
    std::set<int64_t> loading;
    std::set<int64_t> repeating;  // of these, those that failed like this before
    std::set<int64_t> changing;   // of these, those that only get other instances
    // Results as they come; guarded by mutex_.
    std::map<int64_t, std::unique_ptr<LoadedVersion>> loaded;
    std::map<int64_t, std::string> failed;
    size_t changed = 0;
    base::Status status;
    bool is_done = false;
  };

  // Versions on their way out, ensembles before what they contain.
  struct Retirement {
    std::vector<Versions> levels;  // the next one last
    size_t open = 0;               // of the level in progress; guarded by mutex_
  };

  base::Status Begin(Attempt& load);
  // An error once `load` was cancelled.
  static base::Status CheckWanted(const Attempt& load);
  // What it takes to bring a version that may be loaded to what the load's source says.
  config::ConfigChange ChangeOf(const Attempt& load, int64_t version) const NEREID_REQUIRES(mutex_);
  // Changes the instances of a version that is loaded.
  base::Status ChangeInstances(Attempt& load, int64_t version);
  static std::shared_ptr<const config::ModelConfig> ConfigOfLocked(const LoadedVersion& loaded);
  void LoadVersion(Attempt& load, int64_t version);
  base::Result<LoadedVersion> MakeVersion(const Attempt& load, int64_t version) const;
  // All versions of the load are there or have failed.
  void FinishLocked(Attempt& load, Versions& retired) NEREID_REQUIRES(mutex_);
  void CommitLocked(Attempt& load, Versions& retired) NEREID_REQUIRES(mutex_);
  void RollBackLocked(Attempt& load, Versions& retired) NEREID_REQUIRES(mutex_);

  // Takes loaded versions out of service: UNLOADING from the next table on.
  void TakeLocked(const ModelId& id, int64_t version, Versions& retired) NEREID_REQUIRES(mutex_);
  // Without a lock held and after the table that does not offer `versions` any more was published.
  // Whoever watches over the files of versions that were ready hears of it.
  void Retire(Versions versions, bool were_ready);
  void RetireNext(const std::shared_ptr<Retirement>& retirement);
  // The last request of the version has ended.
  void OnDrained(const std::shared_ptr<Retirement>& retirement, LoadedVersion* version);
  void Destroy(std::unique_ptr<LoadedVersion> version);
  // A table in which `changed` are as they are in records_.
  void PublishLocked(const std::set<ModelId>& changed) NEREID_REQUIRES(mutex_);

  // Requests may outlive the life cycle when a server is stopped without patience.
  struct Gate {
    base::Mutex mutex;
    bool is_open NEREID_GUARDED_BY(mutex) = true;
  };

  const ModelLoader& loader_;
  const LifeCycleOptions options_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  Published<ModelTable> table_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  ModelRecords records_ NEREID_GUARDED_BY(mutex_);
  std::optional<std::set<ModelId>> named_ NEREID_GUARDED_BY(mutex_);
  std::map<Key, std::unique_ptr<LoadedVersion>> loaded_ NEREID_GUARDED_BY(mutex_);
  // What the last load of a version failed with, and from which files.
  struct Failure {
    int64_t file_time_ns = 0;
    std::string reason;
  };
  // Whether that is new.
  bool NoteFailureLocked(const Attempt& load, int64_t version, const std::string& reason)
      NEREID_REQUIRES(mutex_);
  // Says in the log that it failed, where that is new.
  void TellFailure(const Attempt& load, int64_t version, const base::Status& status);
  std::map<Key, Failure> failures_ NEREID_GUARDED_BY(mutex_);
  std::set<const LoadedVersion*> retiring_ NEREID_GUARDED_BY(mutex_);  // closed or to be closed
  // Drained, still being taken apart.
  std::set<const core::Model*> destroying_ NEREID_GUARDED_BY(mutex_);
  std::set<Attempt*> loads_ NEREID_GUARDED_BY(mutex_);  // in progress
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
  // The last members, because their threads use the others; loading hands over to unloading.
  base::TaskPool unload_pool_;
  base::TaskPool load_pool_;
};

}  // namespace nereid::engine
