// SPDX-License-Identifier: Apache-2.0
// Tells the server how much memory a model or an instance holds, for `memory_usage` of the
// statistics extension and for metrics.
#pragma once

#include <span>
#include <vector>

#include "backend_kit/handles.h"

namespace nereid::backend {

// What is held of one kind of memory.
struct MemoryUse {
  uint64_t bytes = 0;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;  // of the device
};

// Adds `use` to the entry of `uses` for the same memory.
inline void AddMemoryUse(const MemoryUse& use, std::vector<MemoryUse>* uses) {
  for (MemoryUse& known : *uses) {
    if (known.type == use.type && known.id == use.id) {
      known.bytes += use.bytes;
      return;
    }
  }
  uses->push_back(use);
}

namespace internal {

template <typename Handle>
Error ReportMemoryUse(TRITONSERVER_Error* (*report)(Handle*, TRITONSERVER_BufferAttributes**,
                                                    uint32_t),
                      Handle* handle, std::span<const MemoryUse> uses) {
  std::vector<BufferAttributes> owned;
  std::vector<TRITONSERVER_BufferAttributes*> list;
  for (const MemoryUse& use : uses) {
    TRITONSERVER_BufferAttributes* attributes = nullptr;
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesNew(&attributes));
    owned.emplace_back(attributes);
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesSetMemoryType(attributes, use.type));
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesSetMemoryTypeId(attributes, use.id));
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesSetByteSize(attributes, use.bytes));
    list.push_back(attributes);
  }
  return Error(report(handle, list.data(), static_cast<uint32_t>(list.size())));
}

}  // namespace internal

// Replaces what was reported for the model before, which counts until the model is finalized. One
// entry for each type of memory and device.
inline Error ReportMemoryUse(TRITONBACKEND_Model* model, std::span<const MemoryUse> uses) {
  return internal::ReportMemoryUse(TRITONBACKEND_ModelReportMemoryUsage, model, uses);
}

// Reports what one instance holds. Memory that instances share is the model's.
inline Error ReportMemoryUse(TRITONBACKEND_ModelInstance* instance,
                             std::span<const MemoryUse> uses) {
  return internal::ReportMemoryUse(TRITONBACKEND_ModelInstanceReportMemoryUsage, instance, uses);
}

}  // namespace nereid::backend
