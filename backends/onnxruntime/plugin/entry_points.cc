// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the ONNX Runtime backend.
#include "backend_kit/entry_points.h"
#include "onnxruntime_backend/instance.h"
#include "onnxruntime_backend/library.h"
#include "onnxruntime_backend/providers.h"

// Without a provider for GPUs, KIND_AUTO is the CPU also on a machine that has some.
NEREID_KIT_ENTRY_POINTS_FOR_ANY_MEMORY(
    nereid::onnxruntime::Environment, nereid::onnxruntime::Model, nereid::onnxruntime::Instance,
    NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS |
        (nereid::onnxruntime::HasCuda() ? 0 : NEREIDBACKEND_TRAIT_CPU_BY_DEFAULT))

NEREID_KIT_FRAMEWORK("ONNX Runtime", nereid::onnxruntime::FindFramework)
