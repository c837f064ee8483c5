// SPDX-License-Identifier: Apache-2.0
#include "python_backend/backend.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "backend_kit/handles.h"
#include "python_backend/deaths.h"

namespace nereid::python {
namespace {

namespace fs = std::filesystem;
using backend::Error;
using backend::Result;
using backend::StrCat;

// Returns the folder of this library, which also contains the worker's scripts.
Result<std::string> OwnFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr) {
    return Error::Internal("failed to find the folder of the Python backend");
  }
  std::error_code error;
  const fs::path path = fs::absolute(info.dli_fname, error);
  return path.parent_path().string();
}

}  // namespace

Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend* handle) {
  uint32_t major = 0;
  uint32_t minor = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ApiVersion(&major, &minor));
  // Parameters of responses are the newest function that this backend uses.
  constexpr uint32_t kMinMinor = 17;
  if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < kMinMinor) {
    return Error::Unsupported(StrCat("the Python backend needs the backend API 1.", kMinMinor,
                                     " or newer, the server has ", major, ".", minor));
  }
  auto backend = std::make_unique<Backend>();
  TRITONSERVER_Message* message = nullptr;  // owned by the server
  NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(handle, &message));
  NEREID_KIT_ASSIGN(const std::string_view json, backend::MessageText(message));
  NEREID_KIT_ASSIGN(backend->settings, Settings::Parse(json));
  NEREID_KIT_ASSIGN(backend->folder, OwnFolder());
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_BackendArtifacts(handle, &type, &location));
  std::error_code error;
  // A backend that is a folder with its own model.py, which this library runs.
  const fs::path shared_model = fs::path(location) / "model.py";
  if (!fs::equivalent(location, backend->folder, error) && fs::exists(shared_model, error)) {
    backend->model_folder = location;
  }
  backend->supervisor = std::make_unique<Supervisor>();
  backend->environments = std::make_unique<Environments>(
      *backend->supervisor, backend->folder + "/nereid_python", backend->settings.interpreter);
  backend->deaths = NewDeathFamily();
  return backend;
}

}  // namespace nereid::python
