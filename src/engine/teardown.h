// SPDX-License-Identifier: Apache-2.0
// Takes versions apart that are out of service: each when its last request has ended, and none
// while an ensemble that contains it still has requests, whichever of the two was unloaded first.
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

// What a stop did not wait for.
struct Unfinished {
  size_t busy_versions = 0;       // versions that still have requests
  std::vector<std::string> work;  // everything, one piece of work each, for people

  bool empty() const { return work.empty(); }
};

// Thread-safe.
class Teardown {
 public:
  // Called once a version is gone, on a thread of the teardown; its model is an empty shell by
  // then.
  using OnGone = std::function<void(const repository::ModelId& id, const core::Model& model)>;

  explicit Teardown(OnGone on_gone);
  // Needs that Wait has left nothing unfinished.
  ~Teardown();

  // Announces versions together with the change that takes them out of service: from then on the
  // parts of the ensembles among them stay.
  void Expect(const LoadedVersions& versions);
  // Takes over versions that were announced, once the published table offers them to no new
  // requests. Does not wait.
  void Add(LoadedVersions versions);
  // Waits until all are gone, or `deadline`. What is unfinished then is left alone for ever.
  Unfinished Wait(base::TimePoint deadline);

 private:
  // Requests may outlive the teardown when a server is stopped without patience.
  struct Gate {
    base::Mutex mutex;
    bool is_open NEREID_GUARDED_BY(mutex) = true;
  };

  // The waiting versions that no ensemble needs any more; from here on each belongs to itself,
  // until its last request ends, which a process that stops may not live to see.
  std::vector<LoadedVersion*> TakeFreeLocked() NEREID_REQUIRES(mutex_);
  void CloseFree();
  // The last request of the version has ended.
  void OnDrained(LoadedVersion* version);
  void Destroy(std::unique_ptr<LoadedVersion> version);

  const OnGone on_gone_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  base::Mutex mutex_;
  base::CondVar changed_;
  LoadedVersions waiting_ NEREID_GUARDED_BY(mutex_);                 // not closed yet
  std::set<const LoadedVersion*> closed_ NEREID_GUARDED_BY(mutex_);  // with requests still
  std::set<const core::Model*> destroying_ NEREID_GUARDED_BY(mutex_);
  size_t expected_ NEREID_GUARDED_BY(mutex_) = 0;  // announced, and not taken over yet
  // How many of the ensembles that were announced and still have requests have steps of a model.
  std::map<repository::ModelId, size_t> needed_ NEREID_GUARDED_BY(mutex_);
  base::TaskPool pool_;  // the last member, because its threads use the others
};

}  // namespace nereid::engine
