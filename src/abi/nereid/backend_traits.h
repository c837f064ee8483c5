// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: what a backend promises about itself beyond the
// TRITONBACKEND contract, so that the server may take shorter paths. A backend that exports nothing
// of this header is served exactly as the TRITONBACKEND contract says; a server that does not know
// this header ignores the symbol.
#pragma once

#include <stdint.h>

#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bits of the set that NEREIDBACKEND_Traits returns. The server ignores bits it does not know.
typedef enum NEREIDBACKEND_trait_enum {
  // TRITONBACKEND_ModelInstanceExecute may be called from any thread, one call at a time for each
  // instance, and neither blocks nor depends on which thread it runs on (no thread-local state, no
  // affinity). The server may then run a cheap execution on the thread that received the request
  // instead of handing it to the instance's own thread.
  NEREIDBACKEND_TRAIT_ANY_THREAD = 1,
  // When a response is sent without an error, every byte of every output buffer that was requested
  // for it has been written. The server may then hand out buffers without clearing them first.
  NEREIDBACKEND_TRAIT_WRITES_OUTPUTS = 2,
  // Whatever values are in the memory of inputs and outputs, and however they change from one
  // access to the next, an execution does nothing worse than compute wrong numbers: values are
  // copied or calculated with, and none is checked and then used again as a position, a length or
  // an order. The server may then hand over shared memory of a client, which the client can change
  // at any time; backends without this trait get copies of it.
  NEREIDBACKEND_TRAIT_STANDS_CHANGES = 4,
  // The backend reads inputs in host memory only, whatever kind its instances are. The server then
  // copies inputs that are in the memory of a GPU to host memory first. Instances of KIND_CPU get
  // this without asking. (Outputs are in the memory of a GPU only if the backend asks for that.)
  NEREIDBACKEND_TRAIT_HOST_TENSORS = 8,
  // The backend uses no GPU unless a configuration says so: KIND_AUTO without a list of GPUs is
  // KIND_CPU, also on a machine with GPUs.
  NEREIDBACKEND_TRAIT_CPU_BY_DEFAULT = 16
} NEREIDBACKEND_Trait;

// Optional. Returns the backend's traits as a bitwise-or of NEREIDBACKEND_Trait values, 0 for none.
// Called once, after TRITONBACKEND_Initialize succeeded; the traits hold until
// TRITONBACKEND_Finalize. Must not fail and must not call back into the server.
TRITONBACKEND_ISPEC uint32_t NEREIDBACKEND_Traits(void);

#ifdef __cplusplus
}  // extern "C"
#endif
