// SPDX-License-Identifier: Apache-2.0
// Makes of trouble.cc a backend that promises what it does not keep: that executions do not block,
// so that the server runs them on the threads of its event loops.
#include "nereid/backend_traits.h"

extern "C" uint32_t NEREIDBACKEND_Traits() { return NEREIDBACKEND_TRAIT_ANY_THREAD; }
