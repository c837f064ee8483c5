// SPDX-License-Identifier: Apache-2.0
#include "cloud/sagemaker_status.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace nereid::cloud {
namespace {

// Words in backends' errors that memory is exhausted. Texts: server/src/sagemaker_server.cc.
constexpr std::array<std::string_view, 17> kMemoryWords = {
    "CUDA out of memory",
    "CUDA_OUT_OF_MEMORY",
    "Out of memory",
    "Out Of Memory",
    "out of memory",
    "MemoryError",
    "OutOfMemory",
    "OOM",
    "Dst tensor is not initialized",
    "Src tensor is not initialized",
    "CNMEM_STATUS_OUT_OF_MEMORY",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "Failed to allocate memory",
    "failed to allocate memory",
    "No space left on device",
};

}  // namespace

int SagemakerErrorStatus(const base::Status& error) {
  const bool is_memory = std::ranges::any_of(kMemoryWords, [&](std::string_view words) {
    return error.message().find(words) != std::string_view::npos;
  });
  return is_memory ? 507 : 400;
}

}  // namespace nereid::cloud
