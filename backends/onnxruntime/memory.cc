// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/memory.h"

#include <algorithm>
#include <cstdlib>

#include "onnxruntime_backend/library.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::MemoryUse;
using backend::Result;

namespace {

// The version of the API from which on allocators tell what they have given out.
constexpr uint32_t kHasStatistics = 23;

// Returns how many bytes the session's allocator for this memory has given out; 0 if it does not
// tell.
Result<uint64_t> BytesInUse(OrtSession* session, const OrtMemoryInfo* memory) {
  if (ApiBase().GetApi(kHasStatistics) == nullptr) {
    return uint64_t{0};
  }
  OrtAllocator* allocator = nullptr;
  NEREID_ORT_TRY(Api().CreateAllocator(session, memory, &allocator));
  OrtKeyValuePairs* pairs = nullptr;
  Error error = FromOrt(Api().AllocatorGetStats(allocator, &pairs));
  uint64_t bytes = 0;
  if (error.ok()) {
    const char* const text = Api().GetKeyValue(pairs, "InUse");
    bytes = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
    Api().ReleaseKeyValuePairs(pairs);
  }
  Api().ReleaseAllocator(allocator);
  if (!error.ok()) {
    return error;
  }
  return bytes;
}

Result<uint64_t> BytesOnCpu(OrtSession* session) {
  OrtMemoryInfo* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw));
  const Owned<OrtMemoryInfo> memory(raw);
  return BytesInUse(session, raw);
}

}  // namespace

MemoryUse MemoryOf(OrtSession* session, const Placement& placement, const OrtMemoryInfo* gpu_memory,
                   uint64_t file_bytes) {
  auto told = placement.gpu ? BytesInUse(session, gpu_memory) : BytesOnCpu(session);
  uint64_t bytes = 0;
  if (told.ok()) {
    bytes = told.value();
  } else {
    backend::LogIfError(told.TakeError(), "failed to learn how much memory a session holds");
  }
  if (placement.gpu) {
    return {.bytes = bytes == 0 ? file_bytes : bytes,
            .type = TRITONSERVER_MEMORY_GPU,
            .id = placement.device};
  }
  return {.bytes = std::max(bytes, file_bytes)};
}

}  // namespace nereid::onnxruntime
