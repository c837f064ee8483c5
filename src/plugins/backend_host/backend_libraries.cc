// SPDX-License-Identifier: Apache-2.0
#include "backend_host/backend_libraries.h"

#include <filesystem>

#include "abi_objects/message.h"
#include "config/paths.h"

namespace nereid::backend_host {
namespace {

constexpr const char* kDefaultMaxBatchSize = "4";

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

bool FileExists(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

}  // namespace

BackendLibraries::BackendLibraries(BackendLibrariesOptions options)
    : options_(std::move(options)) {}

BackendLibraries::~BackendLibraries() {
  std::vector<std::unique_ptr<BackendLibrary>> libraries;
  {
    base::MutexLock lock(mutex_);
    libraries.swap(libraries_);
  }
  while (!libraries.empty()) libraries.pop_back();
}

base::Result<BackendLibraries::Location> BackendLibraries::Find(const BackendQuery& query) const {
  const bool has_runtime = !query.runtime.empty();
  const std::string file = has_runtime ? query.runtime : "libtriton_" + query.backend + ".so";
  std::vector<std::string> directories = {
      config::JoinPath(query.model_dir, std::to_string(query.version)), query.model_dir};
  if (IsPlainName(query.backend)) {
    directories.push_back(config::JoinPath(options_.backend_directory, query.backend));
  }
  std::string searched;
  for (const std::string& directory : directories) {
    const std::string path = config::JoinPath(directory, file);
    searched += "'" + directory + "' ";
    if (!FileExists(path)) continue;
    // Only a name from the configuration could leave the folder; a link that an administrator put
    // there under the usual name may point anywhere.
    if (has_runtime || !IsPlainName(query.backend)) {
      NEREID_ASSIGN_OR_RETURN(const bool escapes, config::PathEscapes(path, directory));
      if (escapes) {
        return base::InvalidArgumentError("backend library name '" + file +
                                          "' escapes backend directory '" + directory +
                                          "', for model '" + query.model_name +
                                          "', check model config runtime field");
      }
    }
    return Location{Absolute(directory), Absolute(path)};
  }
  if (has_runtime) {
    return base::InvalidArgumentError("unable to find backend library '" + file +
                                      "' for model '" + query.model_name +
                                      "', searched: " + searched);
  }
  return base::InvalidArgumentError("unable to find backend library for backend '" +
                                    query.backend +
                                    "', try specifying runtime on the model configuration.");
}

std::string BackendLibraries::ConfigJson(const std::string& backend) const {
  Settings settings = {
      {"auto-complete-config", options_.auto_complete_config ? "true" : "false"},
      {"backend-directory", options_.backend_directory},
      {"min-compute-capability", std::to_string(options_.min_compute_capability)},
      {"default-max-batch-size", kDefaultMaxBatchSize}};
  for (const std::string& name : {std::string(), backend}) {
    const auto found = options_.backend_settings.find(name);
    if (found == options_.backend_settings.end()) continue;
    for (const auto& [key, value] : found->second) settings[key] = value;
  }
  return abi_objects::SettingsJson("cmdline", settings);
}

base::Result<BackendLibrary*> BackendLibraries::Acquire(const BackendQuery& query) {
  NEREID_ASSIGN_OR_RETURN(const Location location, Find(query));
  std::shared_ptr<Entry> entry;
  {
    base::MutexLock lock(mutex_);
    std::shared_ptr<Entry>& known = entries_[location.path];
    if (known != nullptr) {
      // Kept by a copy: a failed load takes it out of the map.
      const std::shared_ptr<Entry> other = known;
      while (other->is_loading) loaded_.Wait(mutex_);
      if (!other->failure.ok()) return other->failure;
      return other->library;
    }
    known = std::make_shared<Entry>();
    entry = known;
  }
  base::Result<std::unique_ptr<BackendLibrary>> result = BackendLibrary::Load(
      {query.backend, location.directory, location.path, ConfigJson(query.backend)});
  base::MutexLock lock(mutex_);
  entry->is_loading = false;
  if (result.ok()) {
    entry->library = result->get();
    libraries_.push_back(*std::move(result));
  } else {
    entry->failure = result.status();
    entries_.erase(location.path);
  }
  loaded_.NotifyAll();
  if (!entry->failure.ok()) return entry->failure;
  return entry->library;
}

std::vector<LoadedBackend> BackendLibraries::Loaded() const {
  std::vector<LoadedBackend> loaded;
  base::MutexLock lock(mutex_);
  for (const auto& library : libraries_) {
    loaded.push_back({library->name(), library->path(), library->config_json()});
  }
  return loaded;
}

}  // namespace nereid::backend_host
