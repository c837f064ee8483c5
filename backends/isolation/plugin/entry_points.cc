// SPDX-License-Identifier: Apache-2.0
#include "backend_kit/entry_points.h"
#include "isolation_backend/instance.h"
#include "nereid/backend_execution.h"

NEREID_KIT_ENTRY_POINTS(nereid::isolation::Backend, nereid::isolation::Model,
                        nereid::isolation::Instance,
                        NEREIDBACKEND_TRAIT_WRITES_OUTPUTS | NEREIDBACKEND_TRAIT_STANDS_CHANGES)

namespace {

nereid::backend::Result<nereid::isolation::Instance*> InstanceOf(
    TRITONBACKEND_ModelInstance* handle) {
  void* state = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
  return static_cast<nereid::isolation::Instance*>(state);
}

}  // namespace

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(
    TRITONBACKEND_ModelInstance* handle) {
  return nereid::backend::EntryPoint([&]() -> nereid::backend::Error {
    NEREID_KIT_ASSIGN(nereid::isolation::Instance* const instance, InstanceOf(handle));
    return instance->CheckReady();
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* NEREIDBACKEND_ModelInstanceBegin(
    TRITONBACKEND_ModelInstance* handle, TRITONBACKEND_Request** requests, const uint32_t count,
    uint64_t patience_ns, bool* is_over) {
  return nereid::backend::EntryPoint([&]() -> nereid::backend::Error {
    NEREID_KIT_ASSIGN(nereid::isolation::Instance* const instance, InstanceOf(handle));
    *is_over = instance->Begin(requests, count, std::chrono::nanoseconds(patience_ns));
    return {};
  });
}

NEREID_KIT_EXPORT void NEREIDBACKEND_ModelInstanceEnd(TRITONBACKEND_ModelInstance* handle) {
  auto instance = InstanceOf(handle);
  if (instance.ok()) return instance.value()->End();
  nereid::backend::LogIfError(instance.TakeError(), "failed to end an execution");
}
