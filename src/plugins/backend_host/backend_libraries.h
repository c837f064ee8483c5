// SPDX-License-Identifier: Apache-2.0
// All backends of a server: finds the library that a model needs and opens each one once. The
// destructor finalizes the backends in reverse order of loading, so this outlives every model.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend_host/backend_library.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/watchdog.h"

namespace nereid::backend_host {

// The backend that stands in for those of models that run in processes of their own, and the
// parameter that asks for it.
inline constexpr const char* kIsolation = "isolation";

using Settings = std::map<std::string, std::string>;

// The folders of backends, and their settings.
struct BackendLibrariesOptions {
  std::string backend_directory;
  // By backend name; settings under "" apply to all backends.
  std::map<std::string, Settings> backend_settings;
  std::map<std::string, Settings> host_policies;  // by policy name
  bool auto_complete_config = true;
  double min_compute_capability = 0;
  memory::Gpus* gpus = nullptr;             // of the server, or null; outlives the backends
  base::Watchdog* watchdog = nullptr;       // the same, over executions
  std::chrono::seconds execution_limit{0};  // for the watchdog; 0: none
};

// A model's information about its backend.
struct BackendQuery {
  std::string model_name;
  std::string model_dir;  // contains the version folders
  int64_t version = 0;
  std::string backend;
  std::string runtime;  // file name of the library; may be empty
};

// The description of a loaded backend.
struct LoadedBackend {
  std::string name;
  std::string path;
  std::string config_json;
};

// Loads backends. Thread-safe. Different backends are loaded in parallel; callers that need one
// that is being loaded wait for it.
class BackendLibraries {
 public:
  // `server` is returned to backends that ask for their server; it outlives them.
  BackendLibraries(BackendLibrariesOptions options, TRITONSERVER_Server& server);
  ~BackendLibraries();

  // Returns the library for a model: from its version folder, its folder, or the backend directory.
  // A backend may also be a folder with a model.py, which the Python backend runs. A failure is not
  // remembered; the next call tries again.
  base::Result<BackendLibrary*> Acquire(const BackendQuery& query);

  // Whether the backend directory has a library of this backend.
  bool IsInstalled(const std::string& backend) const;

  // Returns the loaded backends in the order of loading.
  std::vector<LoadedBackend> Loaded() const;

  const BackendLibrariesOptions& options() const { return options_; }
  TRITONSERVER_Server& server() const { return server_; }

 private:
  // A library that is open or being opened, or why opening it failed.
  struct Entry {
    bool is_loading = true;
    base::Status failure;
    BackendLibrary* library = nullptr;
  };
  // The place of a library.
  struct Location {
    std::string directory;
    std::string path;
    // Whether `directory` contains a model.py that the Python backend's library at `path` runs for
    // every model.
    bool is_python_based = false;
  };

  base::Result<Location> Find(const BackendQuery& query) const;
  // Returns the place of `file` for the model, or nothing if it is in none of the `directories`.
  base::Result<std::optional<Location>> FindFile(const std::string& file,
                                                 const std::vector<std::string>& directories,
                                                 const BackendQuery& query) const;
  base::Result<Location> FindPythonBased(const BackendQuery& query,
                                         std::vector<std::string> directories) const;
  std::string ConfigJson(const std::string& backend) const;

  const BackendLibrariesOptions options_;
  TRITONSERVER_Server& server_;
  mutable base::Mutex mutex_;
  base::CondVar loaded_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ NEREID_GUARDED_BY(mutex_);  // by path
  std::vector<std::unique_ptr<BackendLibrary>> libraries_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::backend_host
