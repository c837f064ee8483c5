// SPDX-License-Identifier: Apache-2.0
#include "backend_host/backend_libraries.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "abi_objects/message.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "config/paths.h"

namespace nereid::backend_host {
namespace {

constexpr const char* kMaxBatchSizeKey = "default-max-batch-size";
constexpr const char* kDefaultMaxBatchSize = "4";
constexpr const char* kPython = "python";
constexpr const char* kPythonFile = "model.py";

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

std::string LibraryName(const std::string& backend) { return "libtriton_" + backend + ".so"; }

base::Status NotFoundError(const std::string& file, const BackendQuery& query,
                           const std::vector<std::string>& directories) {
  std::string searched;
  for (const std::string& directory : directories) searched += "'" + directory + "' ";
  return base::InvalidArgumentError("unable to find backend library '" + file + "' for model '" +
                                    query.model_name + "', searched: " + searched);
}

// Lists the backends in the backend directory, and explains why the wanted one is not among them.
std::string DirectoryAdvice(const std::string& directory, const std::string& wanted) {
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::string folder = entry->path().string();
    if (FileExists(config::JoinPath(folder, LibraryName(name))) ||
        FileExists(config::JoinPath(folder, kPythonFile))) {
      names.push_back(name);
    }
  }
  if (error) {
    return fmt::format("the backend directory '{}' cannot be read: {}", directory, error.message());
  }
  if (names.empty()) return fmt::format("the backend directory '{}' has no backends", directory);
  std::ranges::sort(names);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return fmt::format("the backend directory '{}' has {}{}", directory, base::QuotedList(views),
                     base::DidYouMean(wanted, views));
}

base::Status NoBackendError(const std::string& backend, const std::string& directory) {
  return base::InvalidArgumentError(fmt::format(
      "unable to find backend library for backend '{}', try specifying runtime on the model "
      "configuration. Searched for '{}' in the model's folder, in its version folder and in '{}'; "
      "{}",
      backend, LibraryName(backend), config::JoinPath(directory, backend),
      DirectoryAdvice(directory, backend)));
}

}  // namespace

BackendLibraries::BackendLibraries(BackendLibrariesOptions options, TRITONSERVER_Server& server)
    : options_(std::move(options)), server_(server) {}

BackendLibraries::~BackendLibraries() {
  std::vector<std::unique_ptr<BackendLibrary>> libraries;
  {
    base::MutexLock lock(mutex_);
    libraries.swap(libraries_);
  }
  while (!libraries.empty()) libraries.pop_back();
}

base::Result<std::optional<BackendLibraries::Location>> BackendLibraries::FindFile(
    const std::string& file, const std::vector<std::string>& directories,
    const BackendQuery& query) const {
  for (const std::string& directory : directories) {
    const std::string path = config::JoinPath(directory, file);
    if (!FileExists(path)) continue;
    // Only a name from the configuration could lead out of the folder. A link that an administrator
    // made under the usual name may point anywhere.
    if (!query.runtime.empty() || !IsPlainName(query.backend)) {
      NEREID_ASSIGN_OR_RETURN(const bool escapes, config::PathEscapes(path, directory));
      if (escapes) {
        return base::InvalidArgumentError(
            "backend library name '" + file + "' escapes backend directory '" + directory +
            "', for model '" + query.model_name + "', check model config runtime field");
      }
    }
    return std::optional(Location{.directory = Absolute(directory), .path = Absolute(path)});
  }
  return std::optional<Location>();
}

base::Result<BackendLibraries::Location> BackendLibraries::Find(const BackendQuery& query) const {
  std::vector<std::string> directories = {
      config::JoinPath(query.model_dir, std::to_string(query.version)), query.model_dir};
  if (IsPlainName(query.backend)) {
    directories.push_back(config::JoinPath(options_.backend_directory, query.backend));
  }
  if (query.runtime == kPythonFile) return FindPythonBased(query, std::move(directories));
  const bool has_runtime = !query.runtime.empty();
  const std::string file = has_runtime ? query.runtime : LibraryName(query.backend);
  NEREID_ASSIGN_OR_RETURN(std::optional<Location> found, FindFile(file, directories, query));
  if (found) return *std::move(found);
  if (has_runtime) return NotFoundError(file, query, directories);
  if (IsPlainName(query.backend) && FileExists(config::JoinPath(directories.back(), kPythonFile))) {
    return FindPythonBased(query, std::move(directories));
  }
  return NoBackendError(query.backend, options_.backend_directory);
}

base::Result<BackendLibraries::Location> BackendLibraries::FindPythonBased(
    const BackendQuery& query, std::vector<std::string> directories) const {
  directories.push_back(config::JoinPath(options_.backend_directory, kPython));
  const std::string library = LibraryName(kPython);
  NEREID_ASSIGN_OR_RETURN(std::optional<Location> found, FindFile(library, directories, query));
  if (!found) return NotFoundError(library, query, directories);
  const std::string folder = config::JoinPath(options_.backend_directory, query.backend);
  const std::string script = config::JoinPath(folder, kPythonFile);
  if (!IsPlainName(query.backend) || !FileExists(script)) {
    return base::InvalidArgumentError("unable to find Python backend based backend library '" +
                                      std::string(kPythonFile) + "' for model '" +
                                      query.model_name + "', searched: '" + script + "'");
  }
  return Location{
      .directory = Absolute(folder), .path = std::move(found->path), .is_python_based = true};
}

std::string BackendLibraries::ConfigJson(const std::string& backend) const {
  Settings settings = {{"auto-complete-config", options_.auto_complete_config ? "true" : "false"},
                       {"backend-directory", options_.backend_directory},
                       {"min-compute-capability", std::to_string(options_.min_compute_capability)}};
  for (const std::string& name : {std::string(), backend}) {
    const auto found = options_.backend_settings.find(name);
    if (found == options_.backend_settings.end()) continue;
    for (const auto& [key, value] : found->second) settings[key] = value;
  }
  if (backend == kIsolation) {
    // The processes of isolated models need the settings of the backends that they run.
    for (const auto& [name, of_backend] : options_.backend_settings) {
      for (const auto& [key, value] : of_backend) settings.emplace(name + "," + key, value);
    }
  }
  const auto [size, is_default] = settings.emplace(kMaxBatchSizeKey, kDefaultMaxBatchSize);
  NEREID_VLOG(
      1, "{}: {},{}",
      is_default ? "Adding default backend config setting" : "Found overwritten default setting",
      size->first, size->second);
  return abi_objects::SettingsJson("cmdline", settings);
}

base::Result<BackendLibrary*> BackendLibraries::Acquire(const BackendQuery& query) {
  NEREID_ASSIGN_OR_RETURN(const Location location, Find(query));
  // Each folder with a script is a backend of its own, although all share one library.
  const std::string key = location.is_python_based ? location.directory : location.path;
  std::shared_ptr<Entry> entry;
  {
    base::MutexLock lock(mutex_);
    std::shared_ptr<Entry>& known = entries_[key];
    if (known != nullptr) {
      // The copy keeps the entry, because a failed load removes it from the map.
      const std::shared_ptr<Entry> other = known;
      while (other->is_loading) loaded_.Wait(mutex_);
      if (!other->failure.ok()) return other->failure;
      return other->library;
    }
    known = std::make_shared<Entry>();
    entry = known;
  }
  base::Result<std::unique_ptr<BackendLibrary>> result = BackendLibrary::Load(
      {.name = query.backend,
       .directory = location.directory,
       .path = location.path,
       .config_json = ConfigJson(location.is_python_based ? kPython : query.backend),
       .is_python_based = location.is_python_based,
       .gpus = options_.gpus});
  base::MutexLock lock(mutex_);
  entry->is_loading = false;
  if (result.ok()) {
    entry->library = result->get();
    libraries_.push_back(*std::move(result));
  } else {
    entry->failure = result.status();
    entries_.erase(key);
  }
  loaded_.NotifyAll();
  if (!entry->failure.ok()) return entry->failure;
  return entry->library;
}

bool BackendLibraries::IsInstalled(const std::string& backend) const {
  const std::string folder = config::JoinPath(options_.backend_directory, backend);
  return IsPlainName(backend) && FileExists(config::JoinPath(folder, LibraryName(backend)));
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
