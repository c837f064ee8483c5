// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the TensorRT backend.
#include "backend_kit/entry_points.h"
#include "tensorrt_backend/instance.h"
#include "tensorrt_backend/library.h"

NEREID_KIT_ENTRY_POINTS_FOR_ANY_MEMORY(nereid::tensorrt::Backend, nereid::tensorrt::Model,
                                       nereid::tensorrt::Instance,
                                       NEREIDBACKEND_TRAIT_WRITES_OUTPUTS |
                                           NEREIDBACKEND_TRAIT_STANDS_CHANGES)

NEREID_KIT_FRAMEWORK("TensorRT", nereid::tensorrt::FindFramework)
