// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "engine/testing/fakes.h"
#include "repository/store.h"

namespace nereid::engine {
namespace {

constexpr const char* kConfigFile = "config.pbtxt";

// A model's folder with nothing but the times of its entries.
class TimesStore final : public repository::Store {
 public:
  explicit TimesStore(const FakeModel& model) {
    times_[kConfigFile] = model.config_time_ns;
    for (const auto& [version, time] : model.versions) times_[std::to_string(version)] = time;
  }
  base::Result<std::vector<repository::Entry>> List(const std::string& /*folder*/) const override {
    std::vector<repository::Entry> entries;
    for (const auto& [name, time] : times_) entries.push_back({name, false});
    return entries;
  }
  bool Exists(const std::string& /*path*/) const override { return true; }
  bool IsFolder(const std::string& /*path*/) const override { return true; }
  base::Result<std::string> Read(const std::string& path, size_t /*max_bytes*/) const override {
    return base::NotFoundError(path);
  }
  base::Result<int64_t> ModifiedNs(const std::string& path) const override {
    const auto time = times_.find(path.substr(path.rfind('/') + 1));
    return time == times_.end() ? 0 : time->second;
  }

 private:
  std::map<std::string, int64_t> times_;
};

repository::ModelTimestamp TimestampFor(const FakeModel& model) {
  return repository::ModelTimestamp::Of(TimesStore(model), "m", std::string("m/") + kConfigFile);
}

// Files that record their calls as events.
class FakeFiles final : public repository::ModelFiles {
 public:
  FakeFiles(Events& events, std::string name) : events_(events), name_(std::move(name)) {}
  ~FakeFiles() override {
    if (is_told_) events_.Add("gone " + name_);
  }
  void OnLoaded() override { Tell("loaded "); }
  void OnLoadFailed() override { Tell("failed "); }
  void OnUnloading() override { Tell("unloading "); }

 private:
  void Tell(const char* what) {
    is_told_ = true;
    events_.Add(what + name_);
  }

  Events& events_;
  const std::string name_;
  bool is_told_ = false;
};

config::VersionPolicy Policy(decltype(config::VersionPolicy::choice) choice) {
  config::VersionPolicy policy;
  policy.choice = std::move(choice);
  return policy;
}

}  // namespace

config::VersionPolicy AllVersions() { return Policy(config::VersionPolicy::All()); }
config::VersionPolicy LatestVersions(uint32_t count) {
  return Policy(config::VersionPolicy::Latest{count});
}
config::VersionPolicy SpecificVersions(std::vector<int64_t> versions) {
  return Policy(config::VersionPolicy::Specific{std::move(versions)});
}

config::ModelConfig PlainConfig(const std::string& name) {
  config::ModelConfig config;
  config.name = name;
  config.backend = "fake";
  config.version_policy = LatestVersions(1);
  config::ModelInput input;
  input.name = "INPUT0";
  input.data_type = tensor::DataType::kFp32;
  input.dims = {1};
  config.input.push_back(input);
  config::ModelOutput output;
  output.name = "OUTPUT0";
  output.data_type = tensor::DataType::kFp32;
  output.dims = {1};
  config.output.push_back(output);
  return config;
}

config::ModelConfig InstancesConfig(const std::string& name, int32_t count) {
  config::ModelConfig config = PlainConfig(name);
  config::InstanceGroup group;
  group.count = count;
  config.instance_group.push_back(group);
  return config;
}

config::ModelConfig EnsembleConfig(const std::string& name, const std::vector<std::string>& steps) {
  config::ModelConfig config = PlainConfig(name);
  config.backend.clear();
  config.platform = "ensemble";
  config::Ensembling ensemble;
  std::string last = "INPUT0";
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t colon = steps[i].find(':');
    config::Ensembling::Step step;
    step.model_name = steps[i].substr(0, colon);
    step.model_version = colon == std::string::npos ? -1 : std::stoll(steps[i].substr(colon + 1));
    step.input_map["INPUT0"] = last;
    last = i + 1 == steps.size() ? "OUTPUT0" : "between" + std::to_string(i);
    step.output_map["OUTPUT0"] = last;
    ensemble.step.push_back(std::move(step));
  }
  config.scheduling_choice = std::move(ensemble);
  return config;
}

FakeModel& FakeModel::With(config::VersionPolicy policy) {
  config.version_policy = std::move(policy);
  return *this;
}

FakeModel& FakeModel::With(std::map<int64_t, int64_t> the_versions) {
  versions = std::move(the_versions);
  return *this;
}

FakeModel& FakeModel::Watched() {
  has_watcher = true;
  return *this;
}

repository::ModelSource MakeSource(const FakeModel& model, Events& events,
                                   const std::string& repository, const std::string& name_space) {
  repository::ModelSource source;
  source.name = model.config.name;
  source.name_space = name_space;
  source.repository = repository;
  source.model_folder = repository + "/" + source.name;
  source.shown_folder = source.model_folder;
  source.config_provided = true;
  source.timestamp = TimestampFor(model);
  for (const auto& [version, time] : model.versions) source.versions.insert(version);
  if (!model.refusal.ok()) {
    source.config = model.refusal;
    return source;
  }
  source.config = model.config;
  if (model.has_watcher) source.files = std::make_shared<FakeFiles>(events, source.name);
  return source;
}

void FakeRepositories::Put(const FakeModel& model, const std::string& repository) {
  base::MutexLock lock(mutex_);
  const Place place{repository, model.config.name};
  const auto known = models_.find(place);
  if (known == models_.end()) {
    models_.emplace(place, model);
    return;
  }
  known->second = model;
  known->second.config_time_ns = ++time_ns_;
}

void FakeRepositories::Remove(const std::string& name, const std::string& repository) {
  base::MutexLock lock(mutex_);
  models_.erase({repository, name});
}

void FakeRepositories::Touch(const std::string& name, int64_t version) {
  base::MutexLock lock(mutex_);
  for (auto& [place, model] : models_) {
    if (place.second == name) model.versions[version] = ++time_ns_;
  }
}

void FakeRepositories::SetUnreadable(const std::string& repository, bool is_unreadable) {
  base::MutexLock lock(mutex_);
  unreadable_.erase(repository);
  if (is_unreadable) unreadable_.insert(repository);
}

void FakeRepositories::AddOverride(const std::string& json, const config::ModelConfig& config) {
  base::MutexLock lock(mutex_);
  overrides_[json] = config;
}

void FakeRepositories::SetExamineHook(std::function<void(const std::string& name)> hook) {
  base::MutexLock lock(mutex_);
  hook_ = std::move(hook);
}

size_t FakeRepositories::examined(const std::string& name) const {
  base::MutexLock lock(mutex_);
  const auto count = examined_.find(name);
  return count == examined_.end() ? 0 : count->second;
}

repository::Listing FakeRepositories::ListLocked() const {
  repository::Listing listing;
  for (const std::string& repository : unreadable_) {
    listing.unreadable_repositories[repository] = base::InternalError("unreadable");
  }
  for (const auto& [place, model] : models_) {
    const auto& [repository, name] = place;
    if (unreadable_.contains(repository)) continue;
    const ModelId id(has_namespaces_ ? repository : std::string(), name);
    const bool is_new =
        listing.places
            .try_emplace(id, repository::ModelPlace{.id = id,
                                                    .repository = repository,
                                                    .folder = repository + "/" + name,
                                                    .files = nullptr})
            .second;
    if (!is_new) listing.duplicates.insert(id);
  }
  for (const ModelId& id : listing.duplicates) listing.places.erase(id);
  return listing;
}

repository::Listing FakeRepositories::List() const {
  base::MutexLock lock(mutex_);
  return ListLocked();
}

repository::ScanResult FakeRepositories::ScanAll(const repository::KnownModels& known) const {
  const repository::Listing listing = List();
  repository::ScanResult result;
  result.unreadable_repositories = listing.unreadable_repositories;
  for (const auto& [id, place] : listing.places) {
    const auto before = known.find(id);
    if (before != known.end() && before->second.repository == place.repository &&
        !before->second.timestamp.IsOlderThan(TimestampOf(place))) {
      result.unmodified.insert(id);
    } else {
      result.models.emplace(id, Examine(place, {}));
    }
  }
  for (const ModelId& id : listing.duplicates) {
    repository::ModelSource source;
    source.name = id.name;
    source.config = base::UnavailableError(std::string(repository::kDuplicateReason));
    result.models.emplace(id, std::move(source));
  }
  return result;
}

std::vector<repository::ModelPlace> FakeRepositories::Find(const std::string& name) const {
  const repository::Listing listing = List();
  std::vector<repository::ModelPlace> places;
  for (const auto& [id, place] : listing.places) {
    if (id.name == name) places.push_back(place);
  }
  return places;
}

repository::ModelTimestamp FakeRepositories::TimestampOf(
    const repository::ModelPlace& place) const {
  base::MutexLock lock(mutex_);
  const auto model = models_.find({place.repository, place.id.name});
  return model == models_.end() ? repository::ModelTimestamp() : TimestampFor(model->second);
}

repository::ModelSource FakeRepositories::Examine(const repository::ModelPlace& place,
                                                  const repository::Overrides& overrides) const {
  std::function<void(const std::string&)> hook;
  {
    base::MutexLock lock(mutex_);
    hook = hook_;
  }
  if (hook) hook(place.id.name);
  base::MutexLock lock(mutex_);
  ++examined_[place.id.name];
  // The files of a load request are in no repository; by default they are one version.
  const auto found = models_.find({place.repository, place.id.name});
  FakeModel model = found == models_.end() ? FakeModel(PlainConfig(place.id.name)) : found->second;
  if (found == models_.end() && place.files == nullptr) {
    model.refusal = base::NotFoundError("the model is gone");
  }
  if (overrides.config_json) {
    const auto config = overrides_.find(*overrides.config_json);
    if (config == overrides_.end()) {
      model.refusal = base::InvalidArgumentError("Invalid config override: unknown");
    } else {
      model.config = config->second;
    }
  }
  repository::ModelSource source =
      MakeSource(model, events_, place.repository, place.id.name_space);
  if (place.files != nullptr && source.config.ok()) source.files = place.files;
  return source;
}

}  // namespace nereid::engine
