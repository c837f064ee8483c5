// SPDX-License-Identifier: Apache-2.0
#include "backend_kit/entry_points.h"
#include "python_backend/instance.h"

NEREID_KIT_ENTRY_POINTS(nereid::python::Backend, nereid::python::Model, nereid::python::Instance,
                        NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(
    TRITONBACKEND_ModelInstance* handle) {
  return nereid::backend::EntryPoint([&]() -> nereid::backend::Error {
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
    return static_cast<nereid::python::Instance*>(state)->CheckReady();
  });
}
