// SPDX-License-Identifier: Apache-2.0
// Rules about folders and files of a model.
#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/unique_fd.h"
#include "check/backend_facts.h"
#include "check/rules.h"
#include "config/complete.h"
#include "config/paths.h"
#include "config/versions.h"
#include "repository/advice.h"
#include "repository/local_store.h"

namespace nereid::check {
namespace {

namespace fs = std::filesystem;
using config::JoinPath;
using repository::Entry;

constexpr std::string_view kPythonFile = "model.py";

bool HasDigit(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

void CheckVersionNames(const ModelView& model, Findings& findings) {
  for (const Entry& entry : model.entries) {
    const config::VersionName name = config::ParseVersionName(entry.name);
    const std::string path = JoinPath(model.folder, entry.name);
    if (!entry.is_folder && name.version) {
      findings.AtPath("version-is-file", path,
                      {.text = fmt::format("'{}' is a file", entry.name),
                       .found = "a file",
                       .expected = "a folder with the model file in it"});
    }
    // Other folders may have a purpose of their own.
    if (entry.is_folder && !name.warning.empty() && HasDigit(entry.name)) {
      findings.AtPath("version-name", path,
                      {.text = name.warning,
                       .found = fmt::format("'{}'", entry.name),
                       .expected = "a number without leading zeros"});
    }
  }
}

void CheckPolicy(const ModelView& model, Findings& findings) {
  std::set<int64_t> available;
  for (const auto& [version, contents] : model.versions) available.insert(version);
  const config::VersionSelection selection =
      config::VersionsToLoad(model.config->version_policy, available);
  for (const int64_t version : selection.missing) {
    findings.AtField(
        "version-not-there", "version_policy.specific.versions",
        {.text = fmt::format("version {} is specified for model '{}', but the version directory is "
                             "not present",
                             version, model.name),
         .found = std::to_string(version),
         .expected = fmt::format("one of {}", fmt::join(available, ", "))});
  }
  if (selection.versions.empty()) {
    findings.AtField(
        "version-none-served", "version_policy",
        {.text = fmt::format("at least one version must be available under the version policy of "
                             "model '{}'",
                             model.name),
         .found = "a policy that selects none",
         .expected = fmt::format("one of {}", fmt::join(available, ", "))});
  }
}

// Returns the entry of this name, or null.
const Entry* FindEntry(const std::vector<Entry>& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

// Whether a file or folder may be a model of `backend`, by its name.
bool IsModelOf(const Entry& entry, std::string_view backend) {
  const auto framework = config::FrameworkOfFile(entry.name, entry.is_folder);
  return framework && framework->backend == backend;
}

// Checks the contents of one version folder.
class VersionCheck {
 public:
  VersionCheck(const ModelView& model, int64_t version, const std::vector<Entry>& contents,
               Findings& findings)
      : model_(model),
        config_(*model.config),
        folder_(model.VersionFolder(version)),
        contents_(contents),
        findings_(findings) {}

  void Run() {
    const std::string& file = config_.default_model_filename;
    std::error_code error;
    const std::string path = JoinPath(folder_, file);
    if (fs::status(path, error).type() == fs::file_type::not_found) {
      Missing(file);
      return;
    }
    if (const base::Status status = Readable(path); !status.ok()) {
      findings_.AtPath("model-file-unreadable", path,
                       {.text = std::string(status.message()),
                        .found = "a file that cannot be read",
                        .expected = "a model that this user can read"});
      return;
    }
    Contents(path);
    Partner(file);
    if (config_.backend == "python" && !fs::is_directory(path, error)) Script(path);
  }

 private:
  void Missing(const std::string& file) {
    const auto similar = std::ranges::find_if(
        contents_, [&](const Entry& entry) { return IsModelOf(entry, config_.backend); });
    const std::string text = fmt::format("'{}' is not in '{}'", file, folder_);
    if (similar != contents_.end()) {
      Report("model-file-name",
             {.text = text,
              .found = fmt::format("'{}'", similar->name),
              .expected = fmt::format("'{}'", file),
              .suggestion =
                  fmt::format("Rename '{0}' to '{1}', or write default_model_filename: \"{0}\".",
                              similar->name, file)});
      return;
    }
    std::vector<std::string_view> names;
    for (const Entry& entry : contents_) names.push_back(entry.name);
    Report("model-file-missing",
           {.text = text,
            .found = names.empty() ? "an empty folder" : base::QuotedList(names),
            .expected = fmt::format("'{}'", file)});
  }

  static base::Status Readable(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return repository::LocalStore().List(path).status();
    const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.valid()) return base::OkStatus();
    return base::InternalError(
        fmt::format("failed to open file {}: {}", path, std::strerror(errno)));
  }

  // At the name in the configuration if it has one, or else at the folder.
  void Report(std::string_view code, Findings::What what) {
    if (model_.Has("default_model_filename")) {
      findings_.AtField(code, "default_model_filename", std::move(what));
    } else {
      findings_.AtPath(code, folder_, std::move(what));
    }
  }

  void Contents(const std::string& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    if (fs::file_size(path, error) == 0 && !error) {
      findings_.AtPath(
          "model-file-empty", path,
          {.text = fmt::format("'{}' is empty", path), .found = "0 bytes", .expected = "a model"});
      return;
    }
    constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec";
    std::string begin(kPointer.size(), '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    if (!file || begin != kPointer) return;
    findings_.AtPath("model-file-is-pointer", path,
                     {.text = fmt::format("'{}' is a pointer of Git LFS, not a model", path),
                      .found = "a pointer of Git LFS",
                      .expected = "a model"});
  }

  void Partner(const std::string& file) {
    std::string partner;
    if (config_.backend == "openvino" && file.ends_with(".xml")) {
      partner = file.substr(0, file.size() - 4) + ".bin";
    } else if (config_.backend == "caffe2") {
      partner = "init_" + file;
    }
    if (partner.empty() || FindEntry(contents_, partner) != nullptr) return;
    findings_.AtPath("model-file-part-missing", folder_,
                     {.text = fmt::format("'{}' has no '{}' beside it", file, partner),
                      .found = "nothing",
                      .expected = fmt::format("'{}'", partner)});
  }

  void Script(const std::string& path) {
    if (TextOf(path).find("TritonPythonModel") != std::string::npos) return;
    findings_.AtPath("python-class-missing", path,
                     {.text = fmt::format("'{}' does not mention TritonPythonModel", path),
                      .found = "no such class",
                      .expected = "class TritonPythonModel"});
  }

  const ModelView& model_;
  const config::ModelConfig& config_;
  const std::string folder_;
  const std::vector<Entry>& contents_;
  Findings& findings_;
};

}  // namespace

bool AgentsBringFiles(const ModelView& model) {
  if (!model.written || !model.written->model_repository_agents) return false;
  return std::ranges::any_of(*model.written->model_repository_agents,
                             [](const auto& agent) { return agent.name != "checksum"; });
}

std::string TextOf(const std::string& path) {
  constexpr size_t kMaxBytes = 64 << 20;
  auto text = repository::LocalStore().Read(path, kMaxBytes);
  return text.ok() ? *std::move(text) : std::string();
}

void CheckVersions(const ModelView& model, Findings& findings) {
  CheckVersionNames(model, findings);
  if (model.versions.empty()) {
    findings.AtPath(
        "version-missing", model.folder,
        {.text = fmt::format("model '{}' has no version folder", model.name),
         .found = "no version folder",
         .expected = fmt::format("a folder such as '{}'", model.VersionFolder(1)),
         .suggestion = repository::NoVersionAdvice(model.folder, model.entries,
                                                   model.config.value_or(config::ModelConfig()))});
    return;
  }
  if (model.config) CheckPolicy(model, findings);
}

void CheckModelFiles(const ModelView& model, Findings& findings) {
  const config::ModelConfig& config = *model.config;
  const BackendFacts* const facts = FactsOf(config.backend);
  const bool is_script = config.runtime == kPythonFile;
  if (facts == nullptr || !facts->needs_model_file || is_script || !config.runtime.empty() ||
      config.default_model_filename.empty() || !config.cc_model_filenames.empty()) {
    return;
  }
  for (const int64_t version : model.served) {
    if (model.unreadable.contains(model.VersionFolder(version))) continue;
    VersionCheck(model, version, model.versions.at(version), findings).Run();
  }
  if (model.written && !model.written->backend.empty()) return;
  if (model.written && !(model.written->platform + model.written->default_model_filename).empty()) {
    return;
  }
  const std::vector<Entry>& contents = model.versions.begin()->second;
  std::set<std::string_view> backends;
  for (const Entry& entry : contents) {
    const auto framework = config::FrameworkOfFile(entry.name, entry.is_folder);
    if (framework && framework->file == entry.name) backends.insert(framework->backend);
  }
  if (backends.size() < 2) return;
  const std::vector<std::string_view> names(backends.begin(), backends.end());
  findings.AtPath("model-files-several", model.VersionFolder(model.versions.begin()->first),
                  {.text = fmt::format("there are model files for the backends {}; '{}' is used",
                                       base::QuotedList(names), config.backend),
                   .found = base::QuotedList(names),
                   .expected = "one of them named in config.pbtxt"});
}

}  // namespace nereid::check
