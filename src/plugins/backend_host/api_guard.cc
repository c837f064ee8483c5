// SPDX-License-Identifier: Apache-2.0
// The functions of nereid/guarded_memory.h.
#include "memory/fault_guard.h"
#include "nereid/guarded_memory.h"

namespace {

using nereid::memory::FaultGuard;

FaultGuard* FromHandle(NEREIDBACKEND_MemoryGuard* guard) {
  return reinterpret_cast<FaultGuard*>(guard);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardNew(NEREIDBACKEND_MemoryGuard** guard, void* begin,
                                                 uint64_t byte_size) {
  *guard = reinterpret_cast<NEREIDBACKEND_MemoryGuard*>(new FaultGuard(begin, byte_size));
  return nullptr;
}

TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardIsBroken(NEREIDBACKEND_MemoryGuard* guard,
                                                      bool* is_broken) {
  *is_broken = FromHandle(guard)->is_broken();
  return nullptr;
}

TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardDelete(NEREIDBACKEND_MemoryGuard* guard) {
  delete FromHandle(guard);
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
