// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the ONNX Runtime backend.
#include "backend_kit/entry_points.h"
#include "onnxruntime_backend/instance.h"

NEREID_KIT_ENTRY_POINTS(nereid::onnxruntime::Environment, nereid::onnxruntime::Model,
                        nereid::onnxruntime::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
