// SPDX-License-Identifier: Apache-2.0
// Counts the memory of buffers against a budget while clients fill them, and limits the pool.
#pragma once

#include <cstddef>

#include "base/budget.h"
#include "base/buffer.h"

namespace nereid::base {

// Counts the memory that the first `bytes` of the buffer take, and any that earlier contents left,
// against `budget` until the last reference to the buffer is gone. Returns false if the budget has
// not enough left. Lent bytes are not counted. REQUIRES: the buffer is not empty; the same budget
// in every call, which outlives the buffer; no other thread uses the buffer yet.
[[nodiscard]] bool ChargeBuffer(const BufferRef& buffer, Budget& budget, size_t bytes);

// Limits how many bytes the process-wide pool keeps for reuse. The default is 512 MiB.
void LimitBufferPool(size_t bytes);

}  // namespace nereid::base
