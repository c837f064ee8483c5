// SPDX-License-Identifier: Apache-2.0
// One load of a model in progress: the versions that it loads, the result of each, and whether the
// load is still wanted.
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

// A request to bring one model to the state of its source.
struct LoadJob {
  std::shared_ptr<const repository::ModelSource> source;
  // The models of the steps if the model is an ensemble.
  std::vector<std::shared_ptr<core::Model>> parts;
};

// The work of a load, decided before its first version begins.
struct LoadWork {
  std::set<int64_t> wanted;     // versions that must be ready afterwards
  std::set<int64_t> loading;    // the wanted versions that need work
  std::set<int64_t> repeating;  // of these, versions that failed in the same way before
  std::set<int64_t> changing;   // of these, versions that only change their instances
};

// The progress of one load. Thread-safe.
class LoadAttempt {
 public:
  // The results of all versions.
  struct Results {
    std::map<int64_t, std::unique_ptr<LoadedVersion>> loaded;
    std::map<int64_t, std::string> failed;
    size_t changed = 0;
  };

  explicit LoadAttempt(LoadJob job) : job_(std::move(job)), id_(job_.source->id()) {}

  const LoadJob& job() const { return job_; }
  const repository::ModelSource& source() const { return *job_.source; }
  const repository::ModelId& id() const { return id_; }

  // REQUIRES: no result was added yet.
  void SetWork(LoadWork work) { work_ = std::move(work); }
  const LoadWork& work() const { return work_; }

  // Cancels the load as soon as its versions check.
  void Cancel() { is_cancelled_.store(true); }
  // Returns an error if the load was cancelled.
  base::Status CheckWanted() const;

  // Adds the result of one version. `made` is set on success, unless only the instances changed.
  // Returns true for the last version.
  bool AddResult(int64_t version, const base::Status& status, std::unique_ptr<LoadedVersion> made);
  // Called once, after the last result.
  Results TakeResults();

  // Ends the load with its status. Called once.
  void Finish(base::Status status);
  // Waits for Finish, after whose return the attempt may be destroyed.
  base::Status Wait();

 private:
  const LoadJob job_;
  const repository::ModelId id_;
  LoadWork work_;  // constant once the work has begun
  // Polled between steps of a load that may take minutes; it orders no other memory accesses.
  std::atomic<bool> is_cancelled_{false};
  base::Mutex mutex_;
  base::CondVar finished_;
  Results results_ NEREID_GUARDED_BY(mutex_);
  bool is_finished_ NEREID_GUARDED_BY(mutex_) = false;
  base::Status status_ NEREID_GUARDED_BY(mutex_);
};

// Makes a version of a load, with up to `retries` retries on failure while it is wanted.
base::Result<std::unique_ptr<LoadedVersion>> MakeVersion(const ModelFactory& factory,
                                                         const LoadAttempt& load, int64_t version,
                                                         unsigned retries);

}  // namespace nereid::engine
