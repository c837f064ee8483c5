// SPDX-License-Identifier: Apache-2.0
#include "check/read_model.h"

#include <filesystem>

#include "check/rules.h"
#include "config/complete.h"
#include "config/parse.h"
#include "config/paths.h"
#include "config/versions.h"
#include "repository/local_store.h"
#include "repository/scanner.h"

namespace nereid::check {
namespace {

using config::JoinPath;
using repository::Entry;

constexpr size_t kMaxConfigBytes = 64 << 20;

// Leaves models where they are: a check runs no agents.
class NoAgents final : public repository::ModelAgents {
 public:
  base::Result<repository::LocalFolder> Load(const config::ModelConfig&,
                                             repository::LocalFolder folder,
                                             const ReadConfig&) override {
    return folder;
  }
};

std::vector<Entry> EntriesOf(const std::string& folder, ModelView& view) {
  auto entries = repository::LocalStore().List(folder);
  if (entries.ok()) return *std::move(entries);
  view.unreadable[folder] = entries.status();
  return {};
}

void ReadConfig(ModelView& view) {
  const repository::LocalStore store;
  std::error_code error;
  const auto type = std::filesystem::status(view.config_path, error).type();
  // What cannot be examined, in a folder that may not be entered, is read for the error's sake.
  view.has_config = type != std::filesystem::file_type::not_found;
  if (!view.has_config) {
    view.written.emplace();
    return;
  }
  auto text = store.Read(view.config_path, kMaxConfigBytes);
  view.read_status = text.status();
  if (!text.ok()) return;
  view.text = *std::move(text);
  view.places = config::TextPlaces::Read(view.text);
  auto parsed = config::ParseModelConfigText(view.text, view.config_path);
  view.parse_status = parsed.status();
  if (parsed.ok()) view.written = *std::move(parsed);
}

void Complete(ModelView& view, const CheckOptions& options) {
  std::optional<config::VersionFolder> version;
  if (!view.inspected.empty()) {
    version.emplace();
    for (const Entry& entry : view.inspected_contents) {
      (entry.is_folder ? version->folders : version->files).insert(entry.name);
    }
  }
  auto completed = config::CompleteFromFiles(*view.written, view.name, version);
  view.complete_status = completed.status();
  if (!completed.ok()) return;
  view.completed = *std::move(completed);
  view.config = config::Normalize(*view.completed);
  std::set<int64_t> available;
  for (const auto& [number, entries] : view.versions) available.insert(number);
  view.served = config::VersionsToLoad(view.config->version_policy, available).versions;
  view.is_complete = IsComplete(view, options);
}

}  // namespace

ModelView ReadModel(const repository::ModelSource& source, const CheckOptions& options) {
  ModelView view;
  view.name = source.name;
  view.name_space = source.name_space;
  view.repository = source.repository;
  view.folder = source.model_folder;
  view.config_path = source.config_path;
  view.entries = EntriesOf(view.folder, view);
  for (const Entry& entry : view.entries) {
    const config::VersionName name = config::ParseVersionName(entry.name);
    if (!entry.is_folder || !name.version) continue;
    view.versions[*name.version] = EntriesOf(JoinPath(view.folder, entry.name), view);
  }
  view.inspected = repository::FolderToInspect(view.entries).value_or("");
  if (!view.inspected.empty()) {
    view.inspected_contents = EntriesOf(JoinPath(view.folder, view.inspected), view);
  }
  ReadConfig(view);
  if (view.written) Complete(view, options);
  return view;
}

repository::ScanResult ScanRepositories(const CheckOptions& options) {
  const repository::LocalStore store;
  NoAgents agents;
  return repository::Scanner(store, agents,
                             {.repositories = options.repositories,
                              .has_namespaces = options.has_namespaces,
                              .model_config_name = options.model_config_name,
                              .disable_auto_complete = options.disable_auto_complete})
      .ScanAll();
}

}  // namespace nereid::check
