// SPDX-License-Identifier: Apache-2.0
// Inputs in the memory of a GPU, for code that needs them in host memory.
#pragma once

#include "base/status.h"
#include "core/request.h"

namespace nereid::memory {
class Gpus;
}

namespace nereid::core {

// Replaces the chunks of `input` that are in the memory of a GPU by copies in host memory, which
// `request` holds. `gpus` may be null, on a server without GPUs.
base::Status BringToHost(RequestInput& input, Request& request, const memory::Gpus* gpus);

// Does so for all inputs.
base::Status BringInputsToHost(Request& request, const memory::Gpus* gpus);

}  // namespace nereid::core
