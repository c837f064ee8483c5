// SPDX-License-Identifier: Apache-2.0
// The operators CtcGreedy and CtcBeams of kernels.h: ctc.h for the batches of ONNX Runtime.
#pragma once

#include "onnxruntime_backend/ort.h"

namespace nereid::caffe2 {

// Both live as long as the process.
const OrtCustomOp* CtcGreedyOperator();
const OrtCustomOp* CtcBeamsOperator();

}  // namespace nereid::caffe2
