// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "check/read_model.h"
#include "check/rules.h"
#include "config/complete.h"
#include "config/paths.h"
#include "config/versions.h"
#include "repository/advice.h"
#include "repository/local_store.h"

namespace nereid::check {
namespace {

using config::JoinPath;
using config::ModelConfig;
using repository::Entry;
using repository::ModelSource;

bool HasConfig(const std::vector<Entry>& entries) {
  return std::ranges::any_of(
      entries, [](const Entry& entry) { return !entry.is_folder && entry.name == "config.pbtxt"; });
}

// Checks one model on its own.
class ModelCheck {
 public:
  ModelCheck(const ModelSource& source, const CheckOptions& options, std::vector<Finding>& report)
      : source_(source),
        options_(options),
        view_(ReadModel(source, options)),
        findings_(view_, report) {}

  ModelView Run() && {
    if (!IsOtherFolder()) Rules();
    // The server has the last word, once agents have had theirs.
    if (!source_.config.ok() && !findings_.has_errors() && !AgentsBringFiles(view_)) {
      findings_.AtField("refused", "", {.text = std::string(source_.config.status().message())});
    }
    return std::move(view_);
  }

 private:
  // Recognises folders that are no models, and those that cannot be read.
  bool IsOtherFolder() {
    if (!view_.unreadable.empty()) Unreadable();
    // What else could be said of a folder whose contents are not known would be wrong.
    if (view_.unreadable.contains(view_.folder)) return true;
    if (view_.has_config || !view_.versions.empty()) return false;
    if (view_.name.starts_with('.')) {
      findings_.AtPath("folder-hidden", view_.folder,
                       {.text = fmt::format("'{}' is loaded as a model", view_.name),
                        .found = "a hidden folder",
                        .expected = "folders of models only"});
      return true;
    }
    const repository::LocalStore store;
    const bool is_repository = std::ranges::any_of(view_.entries, [&](const Entry& entry) {
      return entry.is_folder &&
             store.Exists(JoinPath(JoinPath(view_.folder, entry.name), "config.pbtxt"));
    });
    if (!is_repository) return false;
    findings_.AtPath("folder-nested", view_.folder,
                     {.text = fmt::format("'{}' contains folders of models", view_.folder),
                      .found = "a repository",
                      .expected = "a model"});
    return true;
  }

  void Unreadable() {
    for (const auto& [folder, status] : view_.unreadable) {
      findings_.AtPath("folder-unreadable", folder,
                       {.text = std::string(status.message()),
                        .found = "a folder that cannot be read",
                        .expected = "a folder that this user can read"});
    }
  }

  void Rules() {
    Misplaced();
    Text();
    const bool has_files = !AgentsBringFiles(view_);
    if (has_files) CheckVersions(view_, findings_);
    if (!view_.config) return;
    const ModelConfig& config = *view_.config;
    findings_.Append(config::ModelConfigErrors(config));
    findings_.Append(config::PathErrors(config, view_.folder));
    if (const base::Status status = config::ValidateFolderName(config, view_.name); !status.ok()) {
      findings_.AtField("folder-name", "name",
                        {.text = std::string(status.message()),
                         .found = fmt::format("'{}'", config.name),
                         .expected = fmt::format("'{}'", view_.name)});
    }
    if (has_files) Files();
    CheckTensors(view_, options_, findings_);
    CheckBatching(view_, findings_);
    CheckInstances(view_, options_, findings_);
    CheckBackend(view_, options_, findings_);
  }

  void Files() {
    CheckModelFiles(view_, findings_);
    CheckLabels(view_, findings_);
    CheckStates(view_, findings_);
    CheckWarmUp(view_, findings_);
  }

  void Misplaced() {
    if (view_.has_config) return;
    const std::string advice = repository::MisplacedConfigAdvice(
        view_.folder, view_.entries, view_.inspected, view_.inspected_contents);
    if (!advice.empty()) findings_.AtPath("config-misplaced", view_.folder, {.text = advice});
    if (!options_.disable_auto_complete) return;
    findings_.AtPath("config-missing", view_.folder,
                     {.text = fmt::format("'{}' is not there", view_.config_path),
                      .found = "nothing",
                      .expected = "a configuration"});
  }

  // Reports why the configuration could not be read, parsed or completed.
  void Text() {
    if (!view_.read_status.ok()) {
      findings_.AtPath("config-unreadable", view_.config_path,
                       {.text = std::string(view_.read_status.message())});
    } else if (!view_.parse_status.ok()) {
      Faults(std::string(view_.parse_status.message()));
    } else if (!view_.complete_status.ok() && !view_.versions.empty() && !IsExplained() &&
               !AgentsBringFiles(view_)) {
      // Without a version folder there is another finding, which explains this one.
      findings_.AtField("backend-unidentified", "",
                        {.text = std::string(view_.complete_status.message()),
                         .found = "neither backend nor a file with a known name",
                         .expected = "backend",
                         .suggestion = repository::NoBackendAdvice(view_.folder, view_.inspected,
                                                                   view_.inspected_contents)});
    }
  }

  // Whether the folder whose files tell the backend has a finding of its own.
  bool IsExplained() const {
    return view_.unreadable.contains(JoinPath(view_.folder, view_.inspected));
  }

  void Faults(const std::string& message) {
    const std::vector<config::TextFault> faults = config::DiagnoseModelConfigText(view_.text);
    for (const config::TextFault& fault : faults) {
      findings_.AtLine(fault.kind, fault.line, fault.column, fault.field,
                       {.text = fmt::format("{}found {}, expected {}",
                                            fault.field.empty() ? "" : fault.field + ": ",
                                            fault.found, fault.expected),
                        .found = fault.found,
                        .expected = fault.expected,
                        .suggestion = Suggestion(fault.expected)});
    }
    if (faults.empty()) findings_.AtLine("syntax", 1, 1, "", {.text = message});
  }

  // What is expected may end in a suggestion: "one of A, B, perhaps 'B'".
  static std::string Suggestion(const std::string& expected) {
    constexpr std::string_view kPerhaps = "perhaps ";
    const size_t at = expected.rfind(kPerhaps);
    if (at == std::string::npos) return {};
    std::string name = expected.substr(at + kPerhaps.size());
    std::erase(name, '\'');
    return fmt::format("Write {}.", name);
  }

  const ModelSource& source_;
  const CheckOptions& options_;
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
  CheckOptions scanned = options;
  std::erase_if(scanned.repositories, [&](const std::string& repository) {
    return !CheckRepository(repository, report.findings);
  });
  const repository::ScanResult found = ScanRepositories(scanned);
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
