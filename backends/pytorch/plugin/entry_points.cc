// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the PyTorch backend. Executions are not offered to just
// any thread (NEREIDBACKEND_TRAIT_WRITES_OUTPUTS): OpenMP would start a pool of threads for each.
#include "backend_kit/entry_points.h"
#include "pytorch_backend/instance.h"
#include "pytorch_backend/torch/framework.h"

NEREID_KIT_ENTRY_POINTS_FOR_ANY_MEMORY(
    nereid::pytorch::Backend, nereid::pytorch::Model, nereid::pytorch::Instance,
    NEREIDBACKEND_TRAIT_WRITES_OUTPUTS |
        (nereid::pytorch::GpuCount() > 0 ? 0 : NEREIDBACKEND_TRAIT_CPU_BY_DEFAULT))

NEREID_KIT_FRAMEWORK("PyTorch", nereid::pytorch::FindFramework)
