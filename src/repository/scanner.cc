// SPDX-License-Identifier: Apache-2.0
#include "repository/scanner.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/utf8.h"
#include "config/complete.h"
#include "config/parse.h"
#include "config/paths.h"
#include "config/validate.h"
#include "config/versions.h"
#include "repository/advice.h"

namespace nereid::repository {
namespace {

// Far larger than any real configuration, and far too small to exhaust memory.
constexpr size_t kMaxConfigBytes = 64 << 20;

std::set<int64_t> FindVersions(const std::vector<Entry>& entries) {
  std::set<int64_t> versions;
  for (const Entry& entry : entries) {
    if (!entry.is_folder) continue;
    const config::VersionName name = config::ParseVersionName(entry.name);
    if (name.version) versions.insert(*name.version);
    if (!name.warning.empty()) NEREID_LOG(kWarning, "{}", name.warning);
  }
  return versions;
}

// Logs one line for each line of the reason, because the log would escape line ends.
void LogRefusal(std::string_view name, std::string_view reason) {
  while (!reason.empty()) {
    const size_t end = reason.find('\n');
    NEREID_LOG(kError, "Poll failed for model directory '{}': {}", name, reason.substr(0, end));
    reason.remove_prefix(end == std::string_view::npos ? reason.size() : end + 1);
  }
}

// The root of a file system of its own has this folder, for what its repair finds.
constexpr std::string_view kLostAndFound = "lost+found";

// Joins the messages of failures under the code of the first one.
class Failures {
 public:
  void Add(const base::Status& status) {
    if (status.ok()) return;
    if (first_.ok()) first_ = status;
    if (!text_.empty()) text_ += '\n';
    text_ += status.message();
  }
  base::Status status() const {
    return first_.ok() ? base::OkStatus() : base::Status(first_.code(), text_);
  }

 private:
  base::Status first_;
  std::string text_;
};

// Returns `told`, which now also keeps `kept` alive.
std::shared_ptr<ModelFiles> KeepBoth(std::shared_ptr<ModelFiles> told,
                                     std::shared_ptr<ModelFiles> kept) {
  ModelFiles* const files = told.get();
  return {files, [told = std::move(told), kept = std::move(kept)](ModelFiles*) {}};
}

}  // namespace

std::optional<std::string> FolderToInspect(const std::vector<Entry>& entries) {
  std::optional<std::string> fallback;
  for (const Entry& entry : entries) {
    if (!entry.is_folder) continue;
    const config::VersionName name = config::ParseVersionName(entry.name);
    if (name.version) return entry.name;
    if (!fallback && !name.warning.empty()) fallback = entry.name;
  }
  return fallback;
}

Scanner::Scanner(const Store& store, ModelAgents& agents, ScanOptions options)
    : store_(store),
      agents_(agents),
      options_(std::move(options)),
      layout_(options_.repositories) {}

base::Status Scanner::Register(const std::string& repository, const NameMapping& names) {
  if (!store_.CheckRepository(repository).ok()) {
    return base::InvalidArgumentError(
        fmt::format("failed to register '{}', repository not found", repository));
  }
  return layout_.Register(repository, names);
}

base::Status Scanner::CheckRepositories() const {
  for (const std::string& repository : layout_.Get()->repositories) {
    NEREID_RETURN_IF_ERROR(store_.CheckRepository(repository));
  }
  return base::OkStatus();
}

void Scanner::KeepOut(std::set<std::string> names) {
  base::MutexLock lock(kept_out_mutex_);
  kept_out_ = std::move(names);
}

bool Scanner::IsKeptOut(const std::string& name) const {
  base::MutexLock lock(kept_out_mutex_);
  return kept_out_.contains(name);
}

Listing Scanner::List() const {
  Listing listing;
  const std::shared_ptr<const Layout> layout = layout_.Get();
  for (const std::string& repository : layout->repositories) {
    const auto entries = store_.List(repository);
    if (!entries.ok()) {
      listing.unreadable_repositories.emplace(repository, entries.status());
      continue;
    }
    for (const Entry& entry : *entries) {
      if (!entry.is_folder || entry.name == kLostAndFound) continue;
      ModelPlace place = PlaceIn(repository, entry.name);
      if (std::string name = layout->NameOf(place.folder); !name.empty()) {
        place.id.name = std::move(name);
        place.is_mapped = true;
      }
      // Clients could not read an index, nor Prometheus a page, that has such a name.
      if (!base::IsValidUtf8(place.id.name)) {
        if (IsNewTrouble(place.folder, "its name is not UTF-8")) {
          NEREID_LOG(kWarning, "'{}' is no model: its name is not UTF-8", place.folder);
        }
        continue;
      }
      if (!listing.places.try_emplace(place.id, place).second) listing.duplicates.insert(place.id);
    }
  }
  for (const ModelId& id : listing.duplicates) listing.places.erase(id);
  return listing;
}

ModelPlace Scanner::PlaceIn(const std::string& repository, const std::string& name) const {
  return {.id = {options_.has_namespaces ? repository : std::string(), name},
          .repository = repository,
          .folder = config::JoinPath(repository, name),
          .files = nullptr};
}

ScanResult Scanner::ScanAll(const KnownModels& known) const {
  for (const std::string& repository : layout_.Get()->repositories) store_.Refresh(repository);
  Listing listing = List();
  std::erase_if(listing.places, [this](const auto& place) { return IsKeptOut(place.first.name); });
  ScanResult result;
  for (const std::string& repository : layout_.Get()->repositories) {
    if (!listing.unreadable_repositories.contains(repository)) IsNewTrouble(repository, {});
  }
  for (const auto& [repository, status] : listing.unreadable_repositories) {
    if (!IsNewTrouble(repository, status.ToString())) continue;
    NEREID_LOG(kError, "failed to poll model repository '{}': {}", repository, status.message());
  }
  for (const auto& [id, place] : listing.places) {
    const auto before = known.find(id);
    if (before != known.end() && before->second.repository == place.repository &&
        !before->second.timestamp.IsOlderThan(TimestampOf(place))) {
      result.unmodified.insert(id);
      IsNewTrouble(place.folder, {});
    } else {
      ModelSource source = Look(place, {});
      const std::string trouble(source.config.ok() ? "" : source.config.status().message());
      if (IsNewTrouble(place.folder, trouble)) LogRefusal(id.Text(), trouble);
      result.models.emplace(id, std::move(source));
    }
  }
  for (const ModelId& id : listing.duplicates) {
    if (IsNewTrouble(id.Text(), std::string(kDuplicateReason))) {
      NEREID_LOG(kError, "failed to poll model '{}': not unique across all model repositories",
                 id.Text());
    }
    ModelSource source;
    source.name = id.name;
    source.config = base::UnavailableError(std::string(kDuplicateReason));
    result.models.emplace(id, std::move(source));
  }
  result.unreadable_repositories = std::move(listing.unreadable_repositories);
  return result;
}

std::vector<ModelPlace> Scanner::Find(const std::string& name) const {
  std::map<ModelId, ModelPlace> found;
  const std::shared_ptr<const Layout> layout = layout_.Get();
  const auto mapped = layout->mapped.find(name);
  for (const std::string& repository : layout->repositories) {
    ModelPlace place = PlaceIn(repository, name);
    if (mapped != layout->mapped.end()) {
      if (mapped->second.repository != repository) continue;
      place.folder = mapped->second.folder;
      place.is_mapped = true;
    } else if (layout->IsMapped(place.folder)) {
      continue;  // the folder belongs to another model
    }
    store_.Refresh(place.folder);
    if (!store_.IsFolder(place.folder)) continue;
    const ModelId id = place.id;
    if (!found.try_emplace(id, std::move(place)).second) {
      NEREID_LOG(kError, "failed to poll model '{}': not unique across all model repositories",
                 name);
      found.clear();
      break;
    }
  }
  if (found.empty()) {
    NEREID_LOG(kError, "failed to poll model '{}': model not found in any model repository.", name);
  }
  std::vector<ModelPlace> places;
  for (auto& [id, place] : found) places.push_back(std::move(place));
  return places;
}

ModelTimestamp Scanner::TimestampOf(const ModelPlace& place) const {
  return ModelTimestamp::Of(store_, place.folder, ConfigPath(place.folder));
}

bool Scanner::IsNewTrouble(const std::string& place, const std::string& trouble) const {
  base::MutexLock lock(told_mutex_);
  if (trouble.empty()) {
    told_.erase(place);
    return false;
  }
  return std::exchange(told_[place], trouble) != trouble;
}

ModelSource Scanner::Examine(const ModelPlace& place, const Overrides& overrides) const {
  ModelSource source = Look(place, overrides);
  if (!source.config.ok()) LogRefusal(place.id.Text(), source.config.status().message());
  return source;
}

ModelSource Scanner::Look(const ModelPlace& place, const Overrides& overrides) const {
  ModelSource source;
  source.name = place.id.name;
  source.name_space = place.id.name_space;
  source.repository = place.repository;
  source.model_folder = place.folder;
  source.shown_folder = place.repository.empty() ? place.id.name : place.folder;
  source.config_path = ConfigPath(source.model_folder);
  auto entries = store_.List(source.model_folder);
  if (entries.ok()) {
    source.timestamp = ModelTimestamp::Of(store_, source.model_folder, source.config_path);
    // Again: what was added before the time was taken would not be a change later.
    entries = store_.List(source.model_folder);
  }
  if (entries.ok()) {
    source.versions = FindVersions(*entries);
    if (!overrides.config_json) source.config_advice = ConfigAdvice(source, *entries);
    source.config = ReadConfig(source, overrides);
    if (place.is_mapped && source.config.ok()) source.config->name = source.name;
    base::Status prepared =
        source.config.ok() ? Prepare(source, place, *source.config) : base::OkStatus();
    if (!prepared.ok()) source.config = std::move(prepared);
    if (source.config.ok()) source.config = Finish(*source.config, source);
    Advise(source);
  } else {
    source.config = entries.status();
  }
  if (!source.config.ok()) source.files.reset();
  return source;
}

std::string Scanner::ConfigAdvice(const ModelSource& source,
                                  const std::vector<Entry>& entries) const {
  if (store_.Exists(source.config_path)) return {};
  const std::string version = FolderToInspect(entries).value_or("");
  std::vector<Entry> contents;
  if (!version.empty()) {
    auto listed = store_.List(config::JoinPath(source.model_folder, version));
    if (listed.ok()) contents = *std::move(listed);
  }
  return MisplacedConfigAdvice(source.shown_folder, entries, version, contents);
}

void Scanner::Advise(ModelSource& source) const {
  if (source.config.ok() && source.versions.empty()) {
    const auto entries = store_.List(source.model_folder);
    source.version_advice = NoVersionAdvice(
        source.shown_folder, entries.ok() ? *entries : std::vector<Entry>(), *source.config);
  }
  if (source.config_advice.empty()) return;
  if (source.config.ok()) {
    NEREID_LOG(kWarning, "model '{}': {}", source.id().Text(), source.config_advice);
    return;
  }
  const base::Status& status = source.config.status();
  source.config = base::Status(status.code(), WithAdvice(status.message(), source.config_advice));
}

base::Status Scanner::Prepare(ModelSource& source, const ModelPlace& place,
                              const config::ModelConfig& config) const {
  LocalFolder folder{place.folder, place.files};
  if (place.files == nullptr) {
    NEREID_ASSIGN_OR_RETURN(folder, store_.Localize(place.folder));
  }
  const std::string unmoved = folder.path;
  if (config.model_repository_agents && !config.model_repository_agents->empty()) {
    NEREID_ASSIGN_OR_RETURN(
        folder, agents_.Load(config, std::move(folder),
                             [this](const std::string& place) { return ConfigIn(place); }));
  }
  if (folder.path != unmoved) {
    NEREID_ASSIGN_OR_RETURN(LocalFolder moved, store_.Localize(folder.path));
    NEREID_ASSIGN_OR_RETURN(const std::vector<Entry> entries, store_.List(moved.path));
    source.versions = FindVersions(entries);
    folder.path = std::move(moved.path);
    if (moved.files != nullptr) folder.files = KeepBoth(std::move(folder.files), moved.files);
  }
  source.model_folder = std::move(folder.path);
  source.files = std::move(folder.files);
  return base::OkStatus();
}

config::ModelConfig Scanner::ConfigIn(const std::string& model_folder) const {
  const std::string path = ConfigPath(model_folder);
  const auto text = store_.Read(path, kMaxConfigBytes);
  if (!text.ok()) return {};
  auto config = config::ParseModelConfigText(*text, path);
  return config.ok() ? std::move(*config) : config::ModelConfig();
}

std::string Scanner::ConfigPath(const std::string& model_folder) const {
  if (!options_.model_config_name.empty()) {
    std::string path = config::JoinPath(config::JoinPath(model_folder, "configs"),
                                        options_.model_config_name + ".pbtxt");
    if (store_.Exists(path)) return path;
  }
  return config::JoinPath(model_folder, "config.pbtxt");
}

base::Result<config::ModelConfig> Scanner::ReadConfig(ModelSource& source,
                                                      const Overrides& overrides) const {
  if (overrides.config_json) {
    source.config_provided = true;
    auto parsed = config::ParseModelConfigJson(*overrides.config_json);
    if (parsed.ok()) return parsed;
    return parsed.status().WithPrefix("Invalid config override: ");
  }
  if (!options_.disable_auto_complete && !store_.Exists(source.config_path)) {
    return config::ModelConfig();
  }
  source.config_provided = true;
  NEREID_ASSIGN_OR_RETURN(const std::string text, store_.Read(source.config_path, kMaxConfigBytes));
  return config::ParseModelConfigText(text, source.config_path);
}

base::Result<config::ModelConfig> Scanner::Finish(config::ModelConfig config,
                                                  const ModelSource& source) const {
  NEREID_ASSIGN_OR_RETURN(const std::vector<Entry> entries, store_.List(source.model_folder));
  std::optional<config::VersionFolder> version;
  std::vector<Entry> contents;
  const std::optional<std::string> folder = FolderToInspect(entries);
  if (folder) {
    NEREID_ASSIGN_OR_RETURN(contents, store_.List(config::JoinPath(source.model_folder, *folder)));
    version.emplace();
    for (const Entry& entry : contents) {
      (entry.is_folder ? version->folders : version->files).insert(entry.name);
    }
  }
  auto completed = config::CompleteFromFiles(std::move(config), source.name, version);
  if (!completed.ok()) {
    const bool has_version = !source.versions.empty();
    std::string
        advice;  // not needed if config_advice names the file that probably tells the backend
    if (source.config_advice.empty()) {
      advice = has_version ? NoBackendAdvice(source.shown_folder, *folder, contents)
                           : NoVersionAdvice(source.shown_folder, entries, {});
    }
    return base::Status(completed.status().code(),
                        WithAdvice(completed.status().message(), advice));
  }
  config = config::Normalize(*std::move(completed));
  Failures failures;
  const std::string_view file = source.config_provided ? source.config_path : std::string_view();
  failures.Add(config::ValidateModelConfig(config, file));
  // With auto-completion the backend may still fill in tensors, which are checked after that.
  if (options_.disable_auto_complete) failures.Add(config::ValidateTensors(config, file));
  failures.Add(config::ValidatePaths(config, source.model_folder, file));
  failures.Add(config::ValidateFolderName(config, source.name));
  if (!failures.status().ok()) return failures.status();
  return config;
}

}  // namespace nereid::repository
