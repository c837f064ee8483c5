// SPDX-License-Identifier: Apache-2.0
// Stand-ins for the neighbours of the life cycle and the model control: repositories without a
// disk, a factory without backends, files that tell what they hear. Everything that happens is
// noted in one list of events:
//
//   "load m:1"       the factory is asked to load a version; "change m:1", to change its instances
//   "unload m:1"     the version is destroyed
//   "loaded m", "failed m", "unloading m", "gone m": what the files of a model heard
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "config/model_config.h"
#include "engine/ensemble_order.h"
#include "engine/model_factory.h"
#include "engine/testing/events.h"
#include "repository/model_scanner.h"

namespace nereid::engine {

// A point in time by which nothing hangs that is not broken, and one that has passed.
base::TimePoint InAMinute();
base::TimePoint Passed();

// --- Models ---

// A model with one FP32 input and output, of which the latest version is served.
config::ModelConfig PlainConfig(const std::string& name);
// A plain model with so many instances.
config::ModelConfig InstancesConfig(const std::string& name, int32_t count);
// An ensemble whose steps are these, one behind the other; "m:2" stands for version 2 of m.
config::ModelConfig EnsembleConfig(const std::string& name, const std::vector<std::string>& steps);

config::VersionPolicy AllVersions();
config::VersionPolicy LatestVersions(uint32_t count);
config::VersionPolicy SpecificVersions(std::vector<int64_t> versions);

// A model as it lies in a repository.
struct FakeModel {
  config::ModelConfig config;
  std::map<int64_t, int64_t> versions = {{1, 1}};  // with the times of their files
  int64_t config_time_ns = 1;
  base::Status refusal;      // why it cannot be served
  bool has_watcher = false;  // whether files hear of its loads

  FakeModel(config::ModelConfig the_config) : config(std::move(the_config)) {}
  FakeModel& With(config::VersionPolicy policy);
  FakeModel& With(std::map<int64_t, int64_t> the_versions);
  FakeModel& Watched();
};

// What a look at the model finds.
repository::ModelSource MakeSource(const FakeModel& model, Events& events,
                                   const std::string& repository = "repo",
                                   const std::string& name_space = "");

// --- Repositories ---

// Thread-safe.
class FakeRepositories final : public repository::ModelScanner {
 public:
  explicit FakeRepositories(Events& events, bool has_namespaces = false)
      : events_(events), has_namespaces_(has_namespaces) {}

  // Puts a model there, or another one in its place.
  void Put(const FakeModel& model, const std::string& repository = "repo");
  void Remove(const std::string& name, const std::string& repository = "repo");
  // Changes the time of the files of a version.
  void Touch(const std::string& name, int64_t version = 1);
  void SetUnreadable(const std::string& repository, bool is_unreadable);
  // Stands for a configuration in a load request.
  void AddOverride(const std::string& json, const config::ModelConfig& config);
  // Runs before a model is examined, without a lock.
  void SetExamineHook(std::function<void(const std::string& name)> hook);
  // How often models of this name were examined.
  size_t examined(const std::string& name) const;

  repository::Listing List() const override;
  repository::ScanResult ScanAll(const repository::KnownModels& known) const override;
  std::vector<repository::ModelPlace> Find(const std::string& name) const override;
  repository::ModelTimestamp TimestampOf(const repository::ModelPlace& place) const override;
  repository::ModelSource Examine(const repository::ModelPlace& place,
                                  const repository::Overrides& overrides) const override;

 private:
  using Place = std::pair<std::string, std::string>;  // repository and name

  repository::Listing ListLocked() const NEREID_REQUIRES(mutex_);

  Events& events_;
  const bool has_namespaces_;
  mutable base::Mutex mutex_;
  std::map<Place, FakeModel> models_ NEREID_GUARDED_BY(mutex_);
  std::set<std::string> unreadable_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, config::ModelConfig> overrides_ NEREID_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> hook_ NEREID_GUARDED_BY(mutex_);
  mutable std::map<std::string, size_t> examined_ NEREID_GUARDED_BY(mutex_);
  int64_t time_ns_ NEREID_GUARDED_BY(mutex_) = 1000;
};

// --- The factory ---

// Thread-safe; outlives what it loads. Versions go by "m:1" here, with namespaces "ns::m:1".
class FakeFactory final : public ModelFactory {
 public:
  explicit FakeFactory(Events& events) : events_(events) {}

  // The next `times` loads, or changes of instances, of the version fail so.
  void Fail(const std::string& version, const std::string& reason, int times = 1'000'000);
  void Mend(const std::string& version);
  // Loads and changes of the version stay where they are until they are let go, or not wanted any
  // more.
  void Hold(const std::string& version);
  // The same for the end of the version, which waits in any case.
  void HoldEnd(const std::string& version);
  void LetGo(const std::string& version);
  // What must never happen, and did: a version that was made twice at the same time, ended with
  // requests in it, or was made of parts that were not there.
  std::vector<std::string> faults() const;
  // How many versions there are.
  size_t alive() const;

  base::Result<std::unique_ptr<ServableModel>> Load(const repository::ModelSource& source,
                                                    int64_t version,
                                                    CheckWanted check_wanted) const override;
  base::Result<std::unique_ptr<ServableModel>> LoadEnsemble(
      const repository::ModelSource& source, int64_t version,
      const std::vector<std::shared_ptr<core::Model>>& models) const override;

 private:
  class Version;
  struct Failure {
    std::string reason;
    int times = 0;
  };

  // Waits while the version is held, and says whether it fails then.
  base::Status Try(const std::string& version, const CheckWanted& check_wanted) const;
  void End(const std::string& version, const core::Model& model) const;

  Events& events_;
  mutable base::Mutex mutex_;
  mutable base::CondVar changed_;
  mutable std::map<std::string, Failure> failures_ NEREID_GUARDED_BY(mutex_);
  std::set<std::string> held_ NEREID_GUARDED_BY(mutex_);
  std::set<std::string> held_ends_ NEREID_GUARDED_BY(mutex_);
  mutable std::set<std::string> loading_ NEREID_GUARDED_BY(mutex_);
  mutable std::vector<std::string> faults_ NEREID_GUARDED_BY(mutex_);
  mutable size_t alive_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::engine
