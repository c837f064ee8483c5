// SPDX-License-Identifier: Apache-2.0
// How much memory a session's arena has.
#pragma once

#include <cstdint>

#include "onnxruntime_backend/ort.h"

namespace nereid::onnxruntime {

// Measures how much memory a session's arena has allocated, if the library can tell. Immutable.
class ArenaMeter {
 public:
  ArenaMeter(const OrtSession* session, const OrtMemoryInfo* memory_info);
  ~ArenaMeter();
  ArenaMeter(const ArenaMeter&) = delete;
  ArenaMeter& operator=(const ArenaMeter&) = delete;

  // Returns 0 if the library cannot tell.
  uint64_t Bytes() const;

 private:
  const OrtApi* api_ = nullptr;
  OrtAllocator* allocator_ = nullptr;
};

}  // namespace nereid::onnxruntime
