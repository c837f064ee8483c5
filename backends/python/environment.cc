// SPDX-License-Identifier: Apache-2.0
#include "python_backend/environment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "backend_kit/handles.h"
#include "python_backend/leftovers.h"

namespace nereid::python {
namespace {

namespace fs = std::filesystem;
using backend::Error;
using backend::Result;
using backend::StrCat;

constexpr std::string_view kModelDirectory = "$$TRITON_MODEL_DIRECTORY";

bool IsExecutable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// Returns whether `path`, which exists, is `folder` or below it after resolving links.
bool IsWithin(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  const fs::path parent = fs::canonical(folder, error);
  const fs::path relative = real.lexically_relative(parent);
  return !error && !relative.empty() && *relative.begin() != "..";
}

Result<std::string> ResolvePath(const std::string& path, const std::string& model_dir) {
  std::string resolved = path;
  const size_t at = path.find(kModelDirectory);
  if (at != std::string::npos) resolved.replace(at, kModelDirectory.size(), model_dir);
  std::error_code error;
  if (!fs::exists(resolved, error)) {
    return Error::Internal(StrCat("Failed to get the canonical path for ", resolved, "."));
  }
  if (at != std::string::npos && !IsWithin(resolved, model_dir)) {
    return Error::InvalidArgument(
        StrCat("EXECUTION_ENV_PATH '", path, "' leads outside the model directory"));
  }
  return resolved;
}

std::string FindProgram(const std::string& name) {
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (candidate.is_absolute() && IsExecutable(candidate)) return candidate.string();
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return {};
}

// Returns the server's variables for a worker, with what keeps libraries from writing and sending
// what nobody asked for. Python would keep compiled modules beside their sources, that is in model
// repositories and in the server's installation, unless somebody has said where or whether it may.
// The server's program switches ONNX Runtime's telemetry off, but other programs may embed it.
std::vector<std::string> WorkerVariables() {
  std::vector<std::string> variables = CurrentEnvironment();
  if (!HasVariable(variables, "PYTHONPYCACHEPREFIX") &&
      !HasVariable(variables, "PYTHONDONTWRITEBYTECODE")) {
    SetVariable(variables, "PYTHONDONTWRITEBYTECODE", "1");
  }
  SetVariable(variables, "ORT_DISABLE_TELEMETRY", "1");
  return variables;
}

// Returns the variables that `bin/activate` of a virtual environment or of a packed conda
// environment would set; the script itself is never run. `name` is the folder's name in messages.
Result<Environment> FromFolder(const std::string& folder, const std::string& name) {
  Environment environment;
  for (const char* program : {"python3", "python"}) {
    const fs::path candidate = fs::path(folder) / "bin" / program;
    if (environment.interpreter.empty() && IsExecutable(candidate)) {
      environment.interpreter = candidate.string();
    }
  }
  if (environment.interpreter.empty()) {
    return Error::Internal(StrCat("Path ", name,
                                  "/bin/python3 does not exist. The Python environment should "
                                  "contain an interpreter."));
  }
  environment.variables = WorkerVariables();
  SetVariable(environment.variables, "PATH",
              StrCat(folder, "/bin:", Variable(environment.variables, "PATH")));
  const bool is_virtual = fs::exists(fs::path(folder) / "pyvenv.cfg");
  SetVariable(environment.variables, is_virtual ? "VIRTUAL_ENV" : "CONDA_PREFIX", folder);
  // These variables are meant for the server's interpreter, not for this one.
  std::erase_if(environment.variables,
                [](const std::string& v) { return v.compare(0, 11, "PYTHONHOME=") == 0; });
  return environment;
}

// Reads what a process writes to its channel before it ends, at most `limit` bytes.
std::string ReadAll(int channel, size_t limit) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = recv(channel, buffer, sizeof(buffer), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    if (text.size() < limit) text.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

// The name and the lock let the server find and remove the folder of a process that was killed.
Result<std::shared_ptr<const TemporaryFolder>> TemporaryFolder::Create() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  // Until the new folder is locked, another server may take it for a leftover.
  for (int attempt = 0; !error && attempt < 8; ++attempt) {
    std::string path = (parent / "nereid-tmp-python-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) break;
    const int lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0) flock(lock, LOCK_SH);
    struct stat held{};
    struct stat named{};
    const bool is_there = lock >= 0 && fstat(lock, &held) == 0 &&
                          lstat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino;
    if (is_there) {
      NoteFolder(path);
      return std::shared_ptr<const TemporaryFolder>(new TemporaryFolder(path, lock));
    }
    if (lock >= 0) close(lock);
  }
  return Error::Internal("Failed to create temporary directory for Python environments.");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
  ForgetFolder(path_);
  close(lock_);
  if (error) backend::LogWarning(StrCat("failed to delete '", path_, "': ", error.message()));
}

Environments::Environments(Supervisor& supervisor, std::string scripts, std::string interpreter)
    : supervisor_(supervisor), scripts_(std::move(scripts)), interpreter_(std::move(interpreter)) {}

Result<EndedProgram> RunToEnd(Supervisor& supervisor, std::vector<std::string> arguments) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::Internal(StrCat("failed to create a socket pair: ", std::strerror(errno)));
  }
  struct Ending {
    backend::Mutex mutex;
    backend::CondVar changed;
    std::optional<std::string> how NEREID_KIT_GUARDED_BY(mutex);
  };
  const auto ending = std::make_shared<Ending>();
  Command command{std::move(arguments), CurrentEnvironment(), ends[1]};
  auto process = supervisor.Start(std::move(command), [ending](std::string how) {
    const backend::MutexLock lock(ending->mutex);
    ending->how = std::move(how);
    ending->changed.NotifyAll();
  });
  close(ends[1]);
  EndedProgram ended{.output = process.ok() ? ReadAll(ends[0], 2000) : std::string(), .how = {}};
  close(ends[0]);
  if (!process.ok()) return process.TakeError();
  const backend::MutexLock lock(ending->mutex);
  while (!ending->how) ending->changed.Wait(ending->mutex);
  ended.how = *ending->how;
  return ended;
}

Result<std::string> DefaultInterpreter(const std::string& configured) {
  if (!configured.empty()) {
    if (IsExecutable(configured)) return configured;
    return Error::InvalidArgument(StrCat("python-runtime '", configured, "' is not a program"));
  }
  for (const char* name : {"python3", "python"}) {
    std::string found = FindProgram(name);
    if (!found.empty()) return found;
  }
  return Error::Unavailable("no Python interpreter found: there is no python3 in PATH");
}

Result<Environment> Environments::Get(const std::string& path, const std::string& model_dir) {
  if (path.empty()) {
    NEREID_KIT_ASSIGN(std::string interpreter, DefaultInterpreter(interpreter_));
    return Environment{std::move(interpreter), WorkerVariables(), nullptr, {}};
  }
  NEREID_KIT_ASSIGN(const std::string resolved, ResolvePath(path, model_dir));
  std::error_code error;
  const fs::path real = fs::canonical(resolved, error);
  if (error) {
    return Error::Internal(StrCat("Failed to get the canonical path for ", resolved, "."));
  }
  if (fs::is_directory(real, error)) return FromFolder(real.string(), real.string());
  NEREID_KIT_ASSIGN(const auto folder, Unpacked(real.string()));
  NEREID_KIT_ASSIGN(Environment environment, FromFolder(folder->path(), real.string()));
  environment.folder = folder;
  environment.archive = real.string();
  return environment;
}

Result<std::shared_ptr<const TemporaryFolder>> Environments::Unpacked(const std::string& archive) {
  struct stat info{};
  if (stat(archive.c_str(), &info) != 0) {
    return Error::Internal(StrCat("failed to read '", archive, "': ", std::strerror(errno)));
  }
  const std::string key = StrCat(archive, ":", info.st_size, ":", info.st_mtim.tv_sec, ".",
                                 info.st_mtim.tv_nsec, ":", info.st_ino);
  // Held while unpacking, because the next model usually waits for the same archive.
  const backend::MutexLock lock(mutex_);
  if (auto known = unpacked_[key].lock()) return known;
  NEREID_KIT_ASSIGN(auto folder, Unpack(archive));
  unpacked_[key] = folder;
  return folder;
}

Result<std::shared_ptr<const TemporaryFolder>> Environments::Unpack(const std::string& archive) {
  NEREID_KIT_ASSIGN(const std::string interpreter, DefaultInterpreter(interpreter_));
  NEREID_KIT_ASSIGN(const auto folder, TemporaryFolder::Create());
  NEREID_KIT_ASSIGN(
      const EndedProgram ended,
      RunToEnd(supervisor_, {interpreter, "-I", scripts_ + "/unpack.py", archive, folder->path()}));
  if (ended.how == "it exited with status 0") return folder;
  std::string reason = ended.output.empty() ? ended.how : ended.output;
  for (size_t at = reason.find(folder->path()); at != std::string::npos;
       at = reason.find(folder->path())) {
    reason.erase(at, folder->path().size());  // users must not depend on the folder's path
  }
  return Error::Internal(
      StrCat("failed to unpack the Python environment '", archive, "': ", reason));
}

}  // namespace nereid::python
