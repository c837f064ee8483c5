// SPDX-License-Identifier: Apache-2.0
// Which model versions exist, in which state, and the work of bringing them up and down. The states of
// a version and the ways between them:
//
//   (none) -> LOADING -> READY -> UNLOADING -> UNAVAILABLE "unloaded"
//                    \-> UNAVAILABLE "<why>"
//
// Every change publishes a new ModelTable. A version is taken apart on a thread of the life cycle once
// its last request has ended.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "engine/ensemble_order.h"
#include "engine/model_loader.h"
#include "engine/model_table.h"
#include "engine/published.h"
#include "repository/scanner.h"

namespace nereid::engine {

// Thread-safe.
class LifeCycle {
 public:
  // `loader` outlives it.
  LifeCycle(const ModelLoader& loader, unsigned load_threads);
  // Needs UnloadAll before.
  ~LifeCycle();

  // Loads what a scan found, several models at once and ensembles after what they contain; returns when
  // every version is READY or UNAVAILABLE. A model that fails hinders only the ensembles it is in.
  void LoadAll(const std::map<std::string, repository::ModelSource>& sources);
  // Refuses new requests, waits for those in flight until `deadline`, and takes everything apart that
  // is idle by then. Ensembles finish before what they contain. The number of versions that still had
  // requests.
  size_t UnloadAll(base::TimePoint deadline);

  const ModelTable& Table() const { return table_.Read(); }
  // Whether every version that was to be served is ready.
  bool AllReady() const { return Table().all_ready(); }

  struct LoadTime {
    std::string model;
    int64_t version;
    double seconds;
  };
  std::vector<LoadTime> LoadTimes() const;
  // Every loaded version, for reading statistics.
  std::vector<std::shared_ptr<core::Model>> LoadedModels() const;

 private:
  struct Key {
    std::string name;
    int64_t version;
    auto operator<=>(const Key&) const = default;
  };

  using Sources = std::map<std::string, repository::ModelSource>;

  // Several at once.
  void LoadModels(const std::vector<const repository::ModelSource*>& sources);
  void LoadModel(const repository::ModelSource& source);
  // Whether it is ready.
  bool LoadVersion(const repository::ModelSource& source, int64_t version,
                   const std::function<base::Result<LoadedVersion>()>& load);
  // The same for all of them; tells those who watch over the model's files how it went.
  void LoadVersions(const repository::ModelSource& source, const std::set<int64_t>& versions,
                    const std::function<base::Result<LoadedVersion>(int64_t)>& load);
  void LoadEnsemble(const repository::ModelSource& source, const EnsembleEntry& entry);
  // Whether everything that the ensemble contains is loaded.
  base::Status CheckParts(const EnsembleEntry& entry) const;
  base::Status CheckPart(const EnsembleEntry& entry, const std::string& model,
                         const std::set<int64_t>& versions) const;
  // The loaded version of that number, or the highest for -1; null when there is none.
  std::shared_ptr<core::Model> LoadedModel(const std::string& name, int64_t version) const;
  void SetVersion(const std::string& name, int64_t version, VersionRecord record);
  void SetModelFailure(const std::string& name, std::string reason);
  // Everything that is loaded, which is UNLOADING from now on.
  std::vector<std::unique_ptr<LoadedVersion>> TakeAll();
  void StartClosing(core::Model& model);
  // Waits for the last request of every closing version; the number of those that still had some.
  size_t WaitUntilClosed(base::TimePoint deadline);
  void PublishLocked() NEREID_REQUIRES(mutex_);

  const ModelLoader& loader_;
  const unsigned load_threads_;
  Published<ModelTable> table_;
  mutable base::Mutex mutex_;
  base::CondVar drained_;
  std::map<std::string, ModelRecord> records_ NEREID_GUARDED_BY(mutex_);
  std::map<Key, std::unique_ptr<LoadedVersion>> loaded_ NEREID_GUARDED_BY(mutex_);
  size_t closing_ NEREID_GUARDED_BY(mutex_) = 0;  // versions with requests in flight
  // Ensembles that do not fit what they contain, as opposed to those that failed to load.
  std::set<std::string> invalid_ensembles_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::engine
