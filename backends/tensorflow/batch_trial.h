// SPDX-License-Identifier: Apache-2.0
// Tries out whether the rows of a batch come out as they do alone.
#pragma once

#include <optional>

#include "backend_kit/batch_rule.h"
#include "tensorflow_backend/program.h"

namespace nereid::tensorflow {

// Why a model cannot be tried out, from its signature; nothing if it can.
std::optional<backend::BatchVerdict> RefuseTrial(const Signature& signature);

// Runs generated rows. `request` takes and returns all tensors of the signature, in its order.
backend::BatchVerdict TryBatches(const Signature& signature, Request& request, int max_rows);

}  // namespace nereid::tensorflow
