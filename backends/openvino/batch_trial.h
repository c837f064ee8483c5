// SPDX-License-Identifier: Apache-2.0
// Tries out whether the rows of a batch come out as they do alone.
#pragma once

#include "backend_kit/batch_rule.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {

// Runs the program on generated rows. REQUIRES: all first dimensions are variable.
backend::BatchVerdict TryBatches(Program& program, int max_rows);

}  // namespace nereid::openvino
