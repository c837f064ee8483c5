// SPDX-License-Identifier: Apache-2.0
#include "abi_objects/parameter.h"

#include <memory>
#include <new>

namespace {

using Value = decltype(TRITONSERVER_Parameter::value);

TRITONSERVER_Parameter* New(const char* name, Value value) noexcept {
  try {
    return new TRITONSERVER_Parameter{name, std::move(value)};
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name,
                                                  const TRITONSERVER_ParameterType type,
                                                  const void* value) {
  switch (type) {
    case TRITONSERVER_PARAMETER_STRING:
      return New(name, std::string(static_cast<const char*>(value)));
    case TRITONSERVER_PARAMETER_INT:
      return New(name, *static_cast<const int64_t*>(value));
    case TRITONSERVER_PARAMETER_BOOL:
      return New(name, *static_cast<const bool*>(value));
    case TRITONSERVER_PARAMETER_DOUBLE:
      return New(name, *static_cast<const double*>(value));
    case TRITONSERVER_PARAMETER_BYTES:
      return nullptr;
  }
  return nullptr;
}

TRITONSERVER_Parameter* TRITONSERVER_ParameterBytesNew(const char* name, const void* byte_ptr,
                                                       const uint64_t size) {
  return New(name, TRITONSERVER_Parameter::Bytes{byte_ptr, size});
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter) { delete parameter; }

}  // extern "C"
#pragma GCC visibility pop
