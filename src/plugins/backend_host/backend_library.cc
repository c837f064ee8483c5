// SPDX-License-Identifier: Apache-2.0
#include "backend_host/backend_library.h"

#include "abi_objects/error.h"
#include "backend_host/handles.h"
#include "base/log.h"

namespace nereid::backend_host {

using abi_objects::CallPlugin;

BackendLibrary::BackendLibrary(BackendLibraryOptions options,
                               std::unique_ptr<base::SharedLibrary> library)
    : options_(std::move(options)),
      library_(std::move(library)),
      config_message_{options_.config_json} {}

base::Result<std::unique_ptr<BackendLibrary>> BackendLibrary::Load(BackendLibraryOptions options) {
  NEREID_ASSIGN_OR_RETURN(std::unique_ptr<base::SharedLibrary> file,
                          base::SharedLibrary::Open(options.path));
  std::unique_ptr<BackendLibrary> library(new BackendLibrary(std::move(options), std::move(file)));
  NEREID_RETURN_IF_ERROR(library->FindEntryPoints());
  NEREID_RETURN_IF_ERROR(library->Initialize());
  NEREID_VLOG(1, "loaded backend '{}' from {}", library->name(), library->options_.path);
  return library;
}

BackendLibrary::~BackendLibrary() {
  if (!is_initialized_ || entry_points_.finalize == nullptr) return;
  const base::Status status = CallPlugin(entry_points_.finalize, ToHandle(this));
  if (!status.ok()) NEREID_LOG(kError, "failed finalizing backend: {}", status.ToString());
}

base::Status BackendLibrary::FindEntryPoints() {
  const auto find = [this]<typename Function>(Function*& function, const char* name) {
    function = library_->Find<Function>(name);
  };
  BackendEntryPoints& e = entry_points_;
  find(e.initialize, "TRITONBACKEND_Initialize");
  find(e.finalize, "TRITONBACKEND_Finalize");
  find(e.get_attribute, "TRITONBACKEND_GetBackendAttribute");
  find(e.model_initialize, "TRITONBACKEND_ModelInitialize");
  find(e.model_finalize, "TRITONBACKEND_ModelFinalize");
  find(e.instance_initialize, "TRITONBACKEND_ModelInstanceInitialize");
  find(e.instance_finalize, "TRITONBACKEND_ModelInstanceFinalize");
  find(e.instance_ready, "TRITONBACKEND_ModelInstanceReady");
  find(e.execute, "TRITONBACKEND_ModelInstanceExecute");
  find(e.traits, "NEREIDBACKEND_Traits");
  find(e.begin, "NEREIDBACKEND_ModelInstanceBegin");
  find(e.end, "NEREIDBACKEND_ModelInstanceEnd");
  if (e.end == nullptr) e.begin = nullptr;
  if (e.execute == nullptr) {
    return base::NotFoundError(
        "unable to find required entrypoint 'TRITONBACKEND_ModelInstanceExecute' in shared "
        "library: " +
        library_->path());
  }
  return base::OkStatus();
}

base::Status BackendLibrary::Initialize() {
  if (entry_points_.initialize != nullptr) {
    NEREID_RETURN_IF_ERROR(CallPlugin(entry_points_.initialize, ToHandle(this)));
  }
  is_initialized_ = true;
  if (entry_points_.traits != nullptr) traits_ = entry_points_.traits();
  if (entry_points_.get_attribute != nullptr) {
    BackendAttributes attributes;
    const base::Status status =
        CallPlugin(entry_points_.get_attribute, ToHandle(this), ToHandle(&attributes));
    if (status.ok()) {
      attributes_ = std::move(attributes);
    } else {
      // As in Triton, a backend without attributes is still usable.
      NEREID_LOG(kWarning, "backend '{}' failed to tell its attributes: {}", name(),
                 status.ToString());
    }
  }
  return base::OkStatus();
}

}  // namespace nereid::backend_host
