// SPDX-License-Identifier: Apache-2.0
// What the stand-ins for TensorRT 10 and 11 have in common: interfaces of the caller that did not
// change, and how objects that the caller holds are laid out.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fake_engine.h"

namespace fake_tensorrt {

// Interfaces of the caller. Not in the unnamed namespace: a compiler that sees no class with them
// there concludes that nobody can call them.
struct InterfaceInfo {
  const char* kind;
  int32_t major;
  int32_t minor;
};

struct VersionedInterface {
  virtual int32_t getAPILanguage() const noexcept = 0;
  virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
  virtual ~VersionedInterface() = default;
};

struct OutputAllocator : VersionedInterface {
  virtual void* reallocateOutput(const char* tensor, void* memory, uint64_t size,
                                 uint64_t alignment) noexcept = 0;
  virtual void* reallocateOutputAsync(const char* tensor, void* memory, uint64_t size,
                                      uint64_t alignment, void* stream) = 0;
  virtual void notifyShape(const char* tensor, const Dims& dims) noexcept = 0;
};

[[noreturn]] inline void Unexpected(const char* function) {
  std::fprintf(stderr, "the backend called %s\n", function);
  std::abort();
}

// What the caller holds and deletes: a table with the destructor, and the implementation.
template <typename Table>
struct Outer {
  virtual ~Outer() { delete table; }
  Table* table = new Table();
};

inline bool SetAddress(Context& context, const char* name, void* memory) {
  if (context.engine->Find(name) == nullptr || context.engine->Fails("set_address")) return false;
  context.addresses[name] = memory;
  return true;
}

inline bool SetAllocator(Context& context, const char* name, OutputAllocator* allocator) {
  context.allocators[name] = {
      [allocator](const char* tensor, uint64_t size) {
        return allocator->reallocateOutputAsync(tensor, nullptr, size, 256, nullptr);
      },
      [allocator](const char* tensor, const Dims& dims) { allocator->notifyShape(tensor, dims); }};
  return true;
}

}  // namespace fake_tensorrt
