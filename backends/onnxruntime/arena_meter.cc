// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/arena_meter.h"

#include <cstdlib>

#include "onnxruntime_backend/library.h"

namespace nereid::onnxruntime {

ArenaMeter::ArenaMeter(const OrtSession* session, const OrtMemoryInfo* memory_info) {
  constexpr uint32_t kTells = 23;
  api_ = ORT_API_VERSION >= kTells ? ApiBase().GetApi(kTells) : nullptr;
  if (api_ != nullptr) {
    FromOrt(api_->CreateAllocator(session, memory_info, &allocator_)).Ignore();
  }
}

ArenaMeter::~ArenaMeter() {
  if (allocator_ != nullptr) {
    api_->ReleaseAllocator(allocator_);
  }
}

uint64_t ArenaMeter::Bytes() const {
  OrtKeyValuePairs* pairs = nullptr;
  if (allocator_ == nullptr || !FromOrt(api_->AllocatorGetStats(allocator_, &pairs)).ok()) {
    return 0;
  }
  const char* const text = api_->GetKeyValue(pairs, "TotalAllocated");
  const uint64_t bytes = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  api_->ReleaseKeyValuePairs(pairs);
  return bytes;
}

}  // namespace nereid::onnxruntime
