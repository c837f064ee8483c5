// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "check/rules.h"
#include "config/complete.h"
#include "config/parse.h"
#include "config/paths.h"
#include "config/versions.h"
#include "repository/advice.h"
#include "repository/local_store.h"
#include "repository/scanner.h"

namespace nereid::check {
namespace {

using config::JoinPath;
using config::ModelConfig;
using repository::Entry;
using repository::ModelSource;

constexpr size_t kMaxConfigBytes = 64 << 20;

// Leaves models where they are: a check runs no agents.
class NoAgents final : public repository::ModelAgents {
 public:
  base::Result<repository::LocalFolder> Load(const ModelConfig&, repository::LocalFolder folder,
                                             const ReadConfig&) override {
    return folder;
  }
};

bool HasConfig(const std::vector<Entry>& entries) {
  return std::ranges::any_of(
      entries, [](const Entry& entry) { return !entry.is_folder && entry.name == "config.pbtxt"; });
}

// Checks one model on its own.
class ModelCheck {
 public:
  ModelCheck(const ModelSource& source, const CheckOptions& options, std::vector<Finding>& report)
      : source_(source), options_(options), findings_(view_, report) {}

  ModelView Run() && {
    view_.name = source_.name;
    view_.name_space = source_.name_space;
    view_.repository = source_.repository;
    view_.folder = source_.shown_folder;
    view_.config_path = source_.config_path;
    auto entries = store_.List(view_.folder);
    if (entries.ok()) view_.entries = *std::move(entries);
    view_.has_config = store_.Exists(view_.config_path);
    if (!IsOtherFolder()) Rules();
    // The server has the last word.
    if (!source_.config.ok() && !findings_.has_errors()) {
      findings_.AtField("refused", "", {.text = std::string(source_.config.status().message())});
    }
    return std::move(view_);
  }

 private:
  // Recognises folders that are no models.
  bool IsOtherFolder() {
    if (view_.has_config || !source_.versions.empty()) return false;
    if (view_.name.starts_with('.')) {
      findings_.AtPath("folder-hidden", view_.folder,
                       {.text = fmt::format("'{}' is loaded as a model", view_.name),
                        .found = "a hidden folder",
                        .expected = "folders of models only"});
      return true;
    }
    const bool is_repository = std::ranges::any_of(view_.entries, [this](const Entry& entry) {
      return entry.is_folder && Contains(entry.name, "config.pbtxt");
    });
    if (!is_repository) return false;
    findings_.AtPath("folder-nested", view_.folder,
                     {.text = fmt::format("'{}' contains folders of models", view_.folder),
                      .found = "a repository",
                      .expected = "a model"});
    return true;
  }

  bool Contains(const std::string& folder, std::string_view file) const {
    return store_.Exists(JoinPath(JoinPath(view_.folder, folder), file));
  }

  void Rules() {
    ReadVersions();
    Misplaced();
    if (ReadConfig()) Complete();
    CheckVersions(view_, findings_);
    if (!view_.config) return;
    const ModelConfig& config = *view_.config;
    findings_.Append(config::ModelConfigErrors(config));
    findings_.Append(config::PathErrors(config, source_.model_folder));
    if (const base::Status status = config::ValidateFolderName(config, view_.name); !status.ok()) {
      findings_.AtField("folder-name", "name",
                        {.text = std::string(status.message()),
                         .found = fmt::format("'{}'", config.name),
                         .expected = fmt::format("'{}'", view_.name)});
    }
    CheckModelFiles(view_, findings_);
    CheckTensors(view_, options_, findings_);
    CheckBatching(view_, findings_);
    CheckInstances(view_, options_, findings_);
    CheckLabels(view_, findings_);
    CheckStates(view_, findings_);
    CheckWarmUp(view_, findings_);
    CheckBackend(view_, options_, findings_);
  }

  void ReadVersions() {
    for (const Entry& entry : view_.entries) {
      const config::VersionName name = config::ParseVersionName(entry.name);
      if (!entry.is_folder || !name.version) continue;
      auto contents = store_.List(JoinPath(view_.folder, entry.name));
      view_.versions[*name.version] = contents.ok() ? *std::move(contents) : std::vector<Entry>();
    }
  }

  void Misplaced() {
    if (view_.has_config) return;
    const std::string version = repository::FolderToInspect(view_.entries).value_or("");
    const std::string advice =
        repository::MisplacedConfigAdvice(view_.folder, view_.entries, version, Contents(version));
    if (!advice.empty()) {
      findings_.AtPath("config-misplaced", view_.folder, {.text = advice});
    }
    if (!options_.disable_auto_complete) return;
    findings_.AtPath("config-missing", view_.folder,
                     {.text = fmt::format("'{}' is not there", view_.config_path),
                      .found = "nothing",
                      .expected = "a configuration"});
  }

  std::vector<Entry> Contents(const std::string& version) const {
    if (version.empty()) return {};
    auto contents = store_.List(JoinPath(view_.folder, version));
    return contents.ok() ? *std::move(contents) : std::vector<Entry>();
  }

  // Reads the configuration, if there is one; returns false after reporting what is wrong with it.
  bool ReadConfig() {
    if (!view_.has_config) {
      view_.written.emplace();
      return true;
    }
    auto text = store_.Read(view_.config_path, kMaxConfigBytes);
    if (!text.ok()) {
      findings_.AtPath("config-unreadable", view_.config_path,
                       {.text = std::string(text.status().message())});
      return false;
    }
    view_.text = *std::move(text);
    view_.places = config::TextPlaces::Read(view_.text);
    auto parsed = config::ParseModelConfigText(view_.text, view_.config_path);
    if (parsed.ok()) {
      view_.written = *std::move(parsed);
      return true;
    }
    Faults(std::string(parsed.status().message()));
    return false;
  }

  void Faults(const std::string& message) {
    const std::vector<config::TextFault> faults = config::DiagnoseModelConfigText(view_.text);
    for (const config::TextFault& fault : faults) {
      // "one of A, B, perhaps 'B'" suggests a name.
      const size_t at = fault.expected.rfind("perhaps ");
      std::string suggestion;
      if (at != std::string::npos) suggestion = fmt::format("Write {}.", Unquoted(fault, at));
      findings_.AtLine(fault.kind, fault.line, fault.column, fault.field,
                       {.text = fmt::format("{}found {}, expected {}",
                                            fault.field.empty() ? "" : fault.field + ": ",
                                            fault.found, fault.expected),
                        .found = fault.found,
                        .expected = fault.expected,
                        .suggestion = std::move(suggestion)});
    }
    if (faults.empty()) findings_.AtLine("syntax", 1, 1, "", {.text = message});
  }

  static std::string Unquoted(const config::TextFault& fault, size_t at) {
    std::string name = fault.expected.substr(at + std::string_view("perhaps ").size());
    std::erase(name, '\'');
    return name;
  }

  void Complete() {
    const std::optional<std::string> folder = repository::FolderToInspect(view_.entries);
    std::vector<Entry> contents;
    std::optional<config::VersionFolder> version;
    if (folder) {
      contents = Contents(*folder);
      version.emplace();
      for (const Entry& entry : contents) {
        (entry.is_folder ? version->folders : version->files).insert(entry.name);
      }
    }
    auto completed = config::CompleteFromFiles(*view_.written, view_.name, version);
    if (!completed.ok()) {
      if (view_.versions.empty()) return;  // which is reported, and explains it
      findings_.AtField(
          "backend-unidentified", "",
          {.text = std::string(completed.status().message()),
           .found = "neither backend nor a file with a known name",
           .expected = "backend",
           .suggestion = repository::NoBackendAdvice(view_.folder, *folder, contents)});
      return;
    }
    view_.config = config::Normalize(*std::move(completed));
    std::set<int64_t> available;
    for (const auto& [number, entries] : view_.versions) available.insert(number);
    view_.served = config::VersionsToLoad(view_.config->version_policy, available).versions;
    view_.is_complete = IsComplete(view_, options_);
  }

  const ModelSource& source_;
  const CheckOptions& options_;
  const repository::LocalStore store_;
  ModelView view_;
  Findings findings_;
};

// Checks that a path is a repository; returns false if its models need not be looked at.
bool CheckRepository(const std::string& repository, std::vector<Finding>& report) {
  const auto add = [&](std::string_view code, std::string text) {
    const Kind& kind = FindKind(code);
    report.push_back({.code = kind.code,
                      .severity = kind.severity,
                      .file = repository,
                      .text = std::move(text),
                      .suggestion = std::string(kind.advice)});
    return false;
  };
  const repository::LocalStore store;
  const auto entries = store.List(repository);
  if (!entries.ok()) return add("repository-unreadable", std::string(entries.status().message()));
  if (HasConfig(*entries)) {
    return add("repository-is-model", fmt::format("'{}' has a config.pbtxt", repository));
  }
  bool has_folder = false;
  for (const Entry& entry : *entries) {
    if (!entry.is_folder) continue;
    has_folder = true;
    if (!config::ParseVersionName(entry.name).version) continue;
    const auto contents = store.List(JoinPath(repository, entry.name));
    const bool is_version =
        contents.ok() && std::ranges::any_of(*contents, [](const Entry& inner) {
          return config::FrameworkOfFile(inner.name, inner.is_folder).has_value();
        });
    if (is_version) {
      return add("repository-is-model",
                 fmt::format("'{}' has the version folder '{}'", repository, entry.name));
    }
  }
  if (!has_folder) add("repository-empty", fmt::format("'{}' has no folder", repository));
  return has_folder;
}

void ReportDuplicate(const ModelSource& source, const CheckOptions& options,
                     std::vector<Finding>& report) {
  const repository::LocalStore store;
  const Kind& kind = FindKind("model-duplicate");
  for (const std::string& repository : options.repositories) {
    const std::string folder = JoinPath(repository, source.name);
    if (!store.IsFolder(folder)) continue;
    report.push_back({.code = kind.code,
                      .severity = kind.severity,
                      .model = source.name,
                      .file = folder,
                      .text = std::string(repository::kDuplicateReason),
                      .suggestion = std::string(kind.advice)});
  }
}

}  // namespace

Report CheckRepositories(const CheckOptions& options) {
  Report report;
  repository::ScanOptions scan;
  for (const std::string& repository : options.repositories) {
    if (CheckRepository(repository, report.findings)) scan.repositories.push_back(repository);
  }
  scan.has_namespaces = options.has_namespaces;
  scan.model_config_name = options.model_config_name;
  scan.disable_auto_complete = options.disable_auto_complete;
  const repository::LocalStore store;
  NoAgents agents;
  const repository::ScanResult found = repository::Scanner(store, agents, scan).ScanAll();
  std::vector<ModelView> models;
  for (const auto& [id, source] : found.models) {
    if (source.model_folder.empty()) {
      ReportDuplicate(source, options, report.findings);
      continue;
    }
    models.push_back(ModelCheck(source, options, report.findings).Run());
  }
  CheckEnsembles(models, report.findings);
  report.models = found.models.size();
  const auto place = [](const Finding& finding) {
    return std::tuple(finding.file, finding.line, finding.column, finding.code, finding.text);
  };
  std::ranges::sort(report.findings, {}, place);
  const auto repeated = std::ranges::unique(report.findings, {}, place);
  report.findings.erase(repeated.begin(), repeated.end());
  return report;
}

}  // namespace nereid::check
