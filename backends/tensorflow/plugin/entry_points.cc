// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the TensorFlow backend.
#include "backend_kit/entry_points.h"
#include "backend_kit/framework.h"
#include "tensorflow_backend/instance.h"
#include "tensorflow_backend/library.h"

namespace nereid::tensorflow {

backend::Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend* handle) {
  TRITONSERVER_Message* message = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(handle, &message));  // owned by the server
  NEREID_KIT_ASSIGN(const std::string_view json, backend::MessageText(message));
  NEREID_KIT_ASSIGN(const CommandLine flags, CommandLine::Parse(json));
  return std::unique_ptr<Backend>(new Backend(flags));
}

namespace {

backend::Result<backend::Framework> FindFramework() {
  NEREID_KIT_ASSIGN(const Library* const library, OpenLibrary());
  return backend::Framework{library->Version(),
                            backend::LibraryOf(reinterpret_cast<const void*>(library->Version))};
}

}  // namespace
}  // namespace nereid::tensorflow

NEREID_KIT_ENTRY_POINTS(nereid::tensorflow::Backend, nereid::tensorflow::Model,
                        nereid::tensorflow::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)

NEREID_KIT_FRAMEWORK("TensorFlow", nereid::tensorflow::FindFramework)
