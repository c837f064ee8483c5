// SPDX-License-Identifier: Apache-2.0
// How much memory the weights of a session take, as far as ONNX Runtime's C API tells.
#pragma once

#include <cstdint>

#include "backend_kit/memory_use.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// Returns what `session` holds. Called after the session was made and before it has run.
//
// On the CPU: `file_bytes`, the size of the model's files, or what the session's allocator has
// given out, if that is more. (ONNX Runtime stores many weights in another order, in memory that
// the allocator does not count.) On a GPU: what the allocator of the GPU has given out, because the
// weights are there alone; `file_bytes` if the library does not tell. What executions take besides
// is not counted.
backend::MemoryUse MemoryOf(OrtSession* session, const Placement& placement,
                            const OrtMemoryInfo* gpu_memory, uint64_t file_bytes);

}  // namespace nereid::onnxruntime
