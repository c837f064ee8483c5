// SPDX-License-Identifier: Apache-2.0
// Chooses which Python interpreter runs a model, and with which variables: the server's own, or
// that of an execution environment (EXECUTION_ENV_PATH), which is a folder or a tar archive of one.
// Archives are unpacked once for all models that name them, by a separate process that writes only
// below its folder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"
#include "python_backend/process.h"

namespace nereid::python {

// A folder that is removed with its last user.
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

// A program that was run to its end.
struct EndedProgram {
  std::string output;  // what it wrote to descriptor 3, at most 2,000 bytes
  std::string how;     // "it exited with status 0"
};

// Starts a program in the server's environment and waits for its end.
backend::Result<EndedProgram> RunToEnd(Supervisor& supervisor, std::vector<std::string> arguments);

// Returns the path of the interpreter that models have without an environment of their own:
// `configured`, or the first python3 or python in PATH if that is empty.
backend::Result<std::string> DefaultInterpreter(const std::string& configured);

// The interpreter that runs a model, and the variables that it needs.
struct Environment {
  std::string interpreter;                        // with its path
  std::vector<std::string> variables;             // KEY=value
  std::shared_ptr<const TemporaryFolder> folder;  // contains the interpreter, if it was unpacked
  std::string archive;                            // the archive it was unpacked from
};

// The environments that models use. Thread-safe.
class Environments {
 public:
  // `scripts` is the folder with the worker's scripts; `interpreter` is the default one, or empty
  // for the one in PATH. `supervisor` outlives this object.
  Environments(Supervisor& supervisor, std::string scripts, std::string interpreter);

  // `path` comes from the model's configuration, and is empty if it has none.
  // $$TRITON_MODEL_DIRECTORY in it stands for `model_dir`, and the path must not leave that folder.
  backend::Result<Environment> Get(const std::string& path, const std::string& model_dir);

 private:
  backend::Result<std::shared_ptr<const TemporaryFolder>> Unpacked(const std::string& archive);
  backend::Result<std::shared_ptr<const TemporaryFolder>> Unpack(const std::string& archive)
      NEREID_KIT_REQUIRES(mutex_);

  Supervisor& supervisor_;
  const std::string scripts_;
  const std::string interpreter_;
  backend::Mutex mutex_;
  // By path, size and time of modification.
  std::map<std::string, std::weak_ptr<const TemporaryFolder>> unpacked_
      NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
