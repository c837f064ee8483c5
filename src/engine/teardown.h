// SPDX-License-Identifier: Apache-2.0
// Tears down versions that are out of service: each after its last request, and not before the
// ensembles that contain it have finished their requests, whichever of the two was unloaded first.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/task_pool.h"
#include "core/model.h"
#include "engine/loaded_version.h"
#include "repository/model_id.h"

namespace nereid::engine {

// The work that a stop did not wait for.
struct Unfinished {
  size_t busy_versions = 0;       // versions that still have requests
  std::vector<std::string> work;  // descriptions of all the work, for people

  bool empty() const { return work.empty(); }
};

// Tears down versions. Thread-safe.
class Teardown {
 public:
  // Called on a thread of the teardown when a version was destroyed; its model has no scheduler any
  // more.
  using OnGone = std::function<void(const repository::ModelId& id, const core::Model& model)>;

  explicit Teardown(OnGone on_gone);
  // REQUIRES: Wait has left nothing unfinished.
  ~Teardown();

  // Announces versions in the same step that takes them out of service. From then on the parts of
  // the ensembles among them are kept.
  void Expect(const LoadedVersions& versions);
  // Takes over announced versions. REQUIRES: the published table no longer offers them to new
  // requests. Does not wait.
  void Add(LoadedVersions versions);
  // Returns whether a step of an announced ensemble with unfinished requests may use one of `ids`.
  bool AreNeeded(const std::set<repository::ModelId>& ids);
  // Waits until the announced versions of `ids` are destroyed; returns false if `deadline` passes
  // first.
  bool WaitUntilGone(const std::set<repository::ModelId>& ids, base::TimePoint deadline);
  // Waits until all are destroyed, or `deadline`. Unfinished work is abandoned.
  Unfinished Wait(base::TimePoint deadline);

 private:
  // Lets requests outlive the teardown when a server is stopped without waiting for them.
  struct Gate {
    base::Mutex mutex;
    bool is_open NEREID_GUARDED_BY(mutex) = true;
  };

  // Takes the waiting versions that no ensemble needs any more. Each one then deletes itself after
  // its last request, which may not happen before the process ends.
  std::vector<LoadedVersion*> TakeFreeLocked() NEREID_REQUIRES(mutex_);
  void CloseFree();
  // Called when the last request of the version has ended.
  void OnDrained(LoadedVersion* version);
  void Destroy(std::unique_ptr<LoadedVersion> version);

  const OnGone on_gone_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  base::Mutex mutex_;
  base::CondVar changed_;
  LoadedVersions waiting_ NEREID_GUARDED_BY(mutex_);  // not closed yet
  std::set<const LoadedVersion*> closed_
      NEREID_GUARDED_BY(mutex_);  // closed, with requests in progress
  std::set<const core::Model*> destroying_ NEREID_GUARDED_BY(mutex_);
  size_t expected_ NEREID_GUARDED_BY(mutex_) = 0;  // announced, but not taken over yet
  // Per model, the number of announced versions that are not destroyed yet.
  std::map<repository::ModelId, size_t> left_ NEREID_GUARDED_BY(mutex_);
  // Per model, the number of announced ensembles with unfinished requests that use it in their
  // steps.
  std::map<repository::ModelId, size_t> needed_ NEREID_GUARDED_BY(mutex_);
  base::TaskPool pool_;  // the last member, because its threads use the others
};

}  // namespace nereid::engine
