// SPDX-License-Identifier: Apache-2.0
// Which Python interpreter runs a model, and with which variables: the server's own, or the one of
// an execution environment, a folder or a tar archive of one (EXECUTION_ENV_PATH). Archives are
// unpacked once for all models that name them, by a process of its own that writes only below its
// folder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"
#include "python_backend/process.h"

namespace nereid::python {

// A folder that goes with its last user.
class TemporaryFolder {
 public:
  static backend::Result<std::shared_ptr<const TemporaryFolder>> Create();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;  // a descriptor of the folder
};

// The interpreter that runs a model, and the variables that it needs.
struct Environment {
  std::string interpreter;                        // with its path
  std::vector<std::string> variables;             // KEY=value
  std::shared_ptr<const TemporaryFolder> folder;  // that it lies in, if it was unpacked
  std::string archive;                            // from which, then
};

// Thread-safe.
class Environments {
 public:
  // `scripts` is the folder with the worker's scripts; `interpreter` the default one, empty for
  // that in PATH. `supervisor` outlives this.
  Environments(Supervisor& supervisor, std::string scripts, std::string interpreter);

  // `path` is what the model's configuration says, empty for none; $$TRITON_MODEL_DIRECTORY in it
  // is `model_dir`, which it must not leave.
  backend::Result<Environment> Get(const std::string& path, const std::string& model_dir);

 private:
  backend::Result<std::string> DefaultInterpreter() const;
  backend::Result<std::shared_ptr<const TemporaryFolder>> Unpacked(const std::string& archive);
  backend::Result<std::shared_ptr<const TemporaryFolder>> Unpack(const std::string& archive)
      NEREID_KIT_REQUIRES(mutex_);

  Supervisor& supervisor_;
  const std::string scripts_;
  const std::string interpreter_;
  backend::Mutex mutex_;
  // By path, size and time of change.
  std::map<std::string, std::weak_ptr<const TemporaryFolder>> unpacked_
      NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
