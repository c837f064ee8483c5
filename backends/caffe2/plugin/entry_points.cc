// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the Caffe2 backend.
#include "backend_kit/entry_points.h"
#include "caffe2_backend/model.h"
#include "onnxruntime_backend/instance.h"
#include "onnxruntime_backend/library.h"

NEREID_KIT_ENTRY_POINTS(nereid::caffe2::Backend, nereid::caffe2::Model,
                        nereid::onnxruntime::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)

// Networks are translated for it.
NEREID_KIT_FRAMEWORK("ONNX Runtime", nereid::onnxruntime::FindFramework)
