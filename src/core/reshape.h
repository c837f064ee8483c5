// SPDX-License-Identifier: Apache-2.0
// The shape that clients see of an output whose configuration has `reshape`.
#pragma once

#include "base/status.h"
#include "core/model.h"
#include "tensor/shape.h"

namespace nereid::core {

// Replaces the backend's `shape` by the output's dims: the batch dimension stays first, and
// wildcards of dims take the values of the wildcards of model_dims in order. Fails if the backend's
// shape has too few dimensions for that.
base::Status ReshapeForClient(const ModelTensor& output, bool has_batch_dimension,
                              tensor::Shape& shape);

}  // namespace nereid::core
