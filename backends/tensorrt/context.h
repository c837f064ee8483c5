// SPDX-License-Identifier: Apache-2.0
// What executes an engine, over TensorRT's binary interface (layout.h).
#pragma once

#include <cstdint>

#include "tensorrt_backend/driver.h"
#include "tensorrt_backend/library.h"

namespace nereid::tensorrt {

// Executes an engine, one execution at a time. Thread-compatible.
class Context {
 public:
  Context(const Library& library, Object* object)
      : slots_(library.slots().context), object_(object) {}
  ~Context() { Delete(object_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  bool SetProfile(int profile, StreamHandle stream);
  bool SetInputShape(const char* tensor, const Dims& dims);
  Dims ShapeOf(const char* tensor) const;
  // Device memory, or memory of the host for shape tensors. It must stay until the execution ends.
  bool SetAddress(const char* tensor, void* memory);
  bool SetInputAddress(const char* tensor, const void* memory);
  bool SetOutputAllocator(const char* tensor, OutputAllocator* allocator);
  // Returns how many inputs lack a shape or values; negative on failure.
  int InferShapes();
  // Returns the bytes of an output with the current shapes of the inputs, or an upper bound.
  int64_t MaxOutputSize(const char* tensor) const;
  bool Enqueue(StreamHandle stream);

 private:
  const Slots::Context& slots_;
  Object* const object_;
};

}  // namespace nereid::tensorrt
