// SPDX-License-Identifier: Apache-2.0
// One load of a model on its way: which versions it is to bring, what became of each, and whether
// it is still wanted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "core/model.h"
#include "engine/loaded_version.h"
#include "engine/model_factory.h"
#include "repository/model_source.h"

namespace nereid::engine {

// One model to be brought to what its source says.
struct LoadJob {
  std::shared_ptr<const repository::ModelSource> source;
  // The models of the steps, if the model is an ensemble.
  std::vector<std::shared_ptr<core::Model>> parts;
};

// What a load has to do, decided before its first version is begun.
struct LoadWork {
  std::set<int64_t> wanted;     // versions that are to be there afterwards
  std::set<int64_t> loading;    // of these, those that something is to be done for
  std::set<int64_t> repeating;  // of those, the ones that failed like this before
  std::set<int64_t> changing;   // of those, the ones that only get other instances
};

// Thread-safe.
class LoadAttempt {
 public:
  // What became of the versions.
  struct Results {
    std::map<int64_t, std::unique_ptr<LoadedVersion>> loaded;
    std::map<int64_t, std::string> failed;
    size_t changed = 0;
  };

  explicit LoadAttempt(LoadJob job) : job_(std::move(job)), id_(job_.source->id()) {}

  const LoadJob& job() const { return job_; }
  const repository::ModelSource& source() const { return *job_.source; }
  const repository::ModelId& id() const { return id_; }

  // Before any result.
  void SetWork(LoadWork work) { work_ = std::move(work); }
  const LoadWork& work() const { return work_; }

  // Gives the load up as soon as its versions ask.
  void Cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  // An error once the load was given up.
  base::Status CheckWanted() const;

  // The result of one version, with `made` where it is a success and not just a change of
  // instances. True for the last one.
  bool AddResult(int64_t version, const base::Status& status, std::unique_ptr<LoadedVersion> made);
  // Once, after the last result.
  Results TakeResults();

  // Ends the load with its status; once.
  void Finish(base::Status status);
  // Waits for Finish, which touches nothing of this any more once it is seen here.
  base::Status Wait();

 private:
  const LoadJob job_;
  const repository::ModelId id_;
  LoadWork work_;  // constant once the work has begun
  // Read between steps of a load that may take minutes; orders nothing else.
  std::atomic<bool> is_cancelled_{false};
  base::Mutex mutex_;
  base::CondVar finished_;
  Results results_ NEREID_GUARDED_BY(mutex_);
  bool is_finished_ NEREID_GUARDED_BY(mutex_) = false;
  base::Status status_ NEREID_GUARDED_BY(mutex_);
};

// Makes a version of a load, with up to `retries` further tries while it fails and is wanted.
base::Result<std::unique_ptr<LoadedVersion>> MakeVersion(const ModelFactory& factory,
                                                         const LoadAttempt& load, int64_t version,
                                                         unsigned retries);

}  // namespace nereid::engine
