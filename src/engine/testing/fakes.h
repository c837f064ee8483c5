// SPDX-License-Identifier: Apache-2.0
// Fakes for the neighbours of the life cycle and the model control: repositories without a disk, a
// factory without backends, files that record their calls. Everything is recorded in one list of
// events:
//
//   "load m:1"       the factory is asked to load a version; "change m:1", to change its instances
//   "unload m:1"     the version is destroyed
//   "loaded m", "failed m", "unloading m", "gone m": calls to the files of a model
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "config/model_config.h"
#include "engine/ensemble_order.h"
#include "engine/model_factory.h"
#include "engine/testing/events.h"
#include "repository/model_scanner.h"

namespace nereid::engine {

// InAMinute is a timeout that only a hanging test reaches; Passed is a time in the past.
base::TimePoint InAMinute();
base::TimePoint Passed();

// --- Models ---

// A model with one FP32 input and output, whose latest version is served.
config::ModelConfig PlainConfig(const std::string& name);
// A plain model with `count` instances.
config::ModelConfig InstancesConfig(const std::string& name, int32_t count);
// An ensemble with these steps in sequence; "m:2" is version 2 of m.
config::ModelConfig EnsembleConfig(const std::string& name, const std::vector<std::string>& steps);

config::VersionPolicy AllVersions();
config::VersionPolicy LatestVersions(uint32_t count);
config::VersionPolicy SpecificVersions(std::vector<int64_t> versions);

// A model in a fake repository.
struct FakeModel {
  config::ModelConfig config;
  std::map<int64_t, int64_t> versions = {{1, 1}};  // with the times of their files
  int64_t config_time_ns = 1;
  base::Status refusal;      // why it cannot be served
  bool has_watcher = false;  // whether its files record calls

  FakeModel(config::ModelConfig the_config) : config(std::move(the_config)) {}
  FakeModel& With(config::VersionPolicy policy);
  FakeModel& With(std::map<int64_t, int64_t> the_versions);
  FakeModel& Watched();
};

// Returns the result of scanning the model.
repository::ModelSource MakeSource(const FakeModel& model, Events& events,
                                   const std::string& repository = "repo",
                                   const std::string& name_space = "");

// --- Repositories ---

// Repositories in memory. Thread-safe.
class FakeRepositories final : public repository::ModelScanner {
 public:
  explicit FakeRepositories(Events& events, bool has_namespaces = false)
      : events_(events), has_namespaces_(has_namespaces) {}

  // Adds a model, or replaces it.
  void Put(const FakeModel& model, const std::string& repository = "repo");
  void Remove(const std::string& name, const std::string& repository = "repo");
  // Changes the time of a version's files.
  void Touch(const std::string& name, int64_t version = 1);
  void SetUnreadable(const std::string& repository, bool is_unreadable);
  // Makes `json` in a load request stand for `config`.
  void AddOverride(const std::string& json, const config::ModelConfig& config);
  // Sets a hook that runs before a model is examined, without a lock.
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

// A factory without backends. Thread-safe; outlives the models it loads. Versions are called "m:1",
// with namespaces "ns::m:1".
class FakeFactory final : public ModelFactory {
 public:
  explicit FakeFactory(Events& events) : events_(events) {}

  // Makes the next `times` loads, or changes of instances, of the version fail with `reason`.
  void Fail(const std::string& version, const std::string& reason, int times = 1'000'000);
  void Mend(const std::string& version);
  // Makes loads and changes of the version block until LetGo, or until they are no longer wanted.
  void Hold(const std::string& version);
  // Makes the destruction of the version block until LetGo.
  void HoldEnd(const std::string& version);
  void LetGo(const std::string& version);
  // Gives the requests to versions to `handler`, which ensures that each gets a response, and asks
  // `has_sequence` whether a version has a sequence. Without this, requests are dropped. REQUIRES:
  // nothing is loaded yet.
  using Handler = std::function<void(const std::string& version, core::RequestPtr request)>;
  using HasSequence = std::function<bool(const std::string& version, uint64_t id)>;
  void Serve(Handler handler, HasSequence has_sequence) {
    handler_ = std::move(handler);
    has_sequence_ = std::move(has_sequence);
  }
  // Sets what is asked how many sequences a version has. REQUIRES: nothing is loaded yet.
  using CountSequences = std::function<size_t(const std::string& version)>;
  void SetCountSequences(CountSequences count) { count_sequences_ = std::move(count); }
  // Violations of invariants: a version that was loaded twice at the same time, was destroyed with
  // requests in it, or was made of parts that were not loaded.
  std::vector<std::string> faults() const;
  // Returns how many versions exist.
  size_t alive() const;

  base::Result<std::unique_ptr<ServableModel>> Load(const repository::ModelSource& source,
                                                    int64_t version,
                                                    CheckWanted check_wanted) const override;
  base::Result<std::unique_ptr<ServableModel>> LoadEnsemble(
      const repository::ModelSource& source, int64_t version,
      const std::vector<std::shared_ptr<core::Model>>& models) const override;

 private:
  class Version;
  class ServingScheduler;
  // A failure that a version is to have.
  struct Failure {
    std::string reason;
    int times = 0;
  };

  // Blocks while the version is held, and returns its failure, if any.
  base::Status Try(const std::string& version, const CheckWanted& check_wanted) const;
  void End(const std::string& version, const core::Model& model) const;

  Events& events_;
  Handler handler_;                 // constant once anything is loaded
  HasSequence has_sequence_;        // constant once anything is loaded
  CountSequences count_sequences_;  // constant once anything is loaded
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
