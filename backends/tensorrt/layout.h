// SPDX-License-Identifier: Apache-2.0
// What is known of TensorRT's binary interface: where the functions of its objects are, and the
// types and numbers that they take and return. TensorRT's headers are not needed to build the
// backend.
//
// An object of TensorRT (runtime, engine, execution context) is two pointers: its own table of
// virtual functions, of which only the destructor is used, and the implementation, whose table has
// the rest. Within a major version functions are only added at the end of a table, so one list of
// positions is enough for each. The lists were compared with the public headers of the
// versions 10.0 to 10.16, 11.0 and 11.1, and with the lengths of the tables in the libraries
// of 11.4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace nereid::tensorrt {

// A shape: Dims.
struct Dims {
  static constexpr int32_t kMaxCount = 8;

  int32_t count = 0;
  std::array<int64_t, kMaxCount> sizes = {};

  // Negative counts mean an error in TensorRT; such a shape has no dimensions here.
  std::span<const int64_t> span() const {
    return {sizes.data(), count > 0 && count <= kMaxCount ? static_cast<size_t>(count) : 0};
  }
};
static_assert(sizeof(Dims) == 72 && offsetof(Dims, sizes) == 8);

// DataType, TensorIOMode, TensorFormat, OptProfileSelector and ILogger::Severity.
enum class ElementType : int32_t {
  kFloat = 0,
  kHalf = 1,
  kInt8 = 2,
  kInt32 = 3,
  kBool = 4,
  kUint8 = 5,
  kFp8 = 6,
  kBf16 = 7,
  kInt64 = 8,
  kInt4 = 9,
  kFp4 = 10,
};
enum class IoMode : int32_t { kNone = 0, kInput = 1, kOutput = 2 };
enum class ProfilePoint : int32_t { kMin = 0, kOpt = 1, kMax = 2 };
enum class Severity : int32_t {
  kInternalError = 0,
  kError = 1,
  kWarning = 2,
  kInfo = 3,
  kVerbose = 4
};
constexpr int32_t kLinearFormat = 0;

// Positions in the tables of one major version. -1: this version has no such function.
struct Slots {
  struct Runtime {
    int deserialize;
    int set_dla_core;
    int dla_core_count;
    int allow_host_code;
  } runtime;
  struct Engine {
    int create_context;
    int is_refittable;
    int profile_count;
    int profile_values;     // returns 32-bit numbers
    int profile_values_64;  // returns 64-bit numbers
    int tensor_shape;
    int tensor_type;
    int is_shape_tensor;
    int io_mode;
    int tensor_format;
    int format_description;
    int profile_shape;
    int tensor_count;
    int tensor_name;
  } engine;
  struct Context {
    int set_profile;
    int set_input_shape;
    int tensor_shape;
    int set_address;
    int set_input_address;
    int infer_shapes;
    int set_output_allocator;
    int max_output_size;
    int enqueue;
  } context;
};

// Returns null for a major version whose layout is not known.
const Slots* SlotsOf(int major);

// A version as getInferLibVersion gives it: 110400 is 11.4.0; before TensorRT 10, 8601 was 8.6.1.
int MajorOf(int version);
std::string VersionText(int version);

// An object as TensorRT returns it.
struct Object {
  void* const* functions;
  void* implementation;
};

// Calls the function at a position of the table of an implementation, as a C++ compiler calls a
// virtual function on Linux: the object is the first argument.
template <typename Returned, typename... Arguments>
Returned Call(const Object* object, int slot, Arguments... arguments) {
  void* const self = object->implementation;
  void* const* const functions = *static_cast<void* const* const*>(self);
  return reinterpret_cast<Returned (*)(void*, Arguments...)>(functions[slot])(self, arguments...);
}

// Deletes an object of TensorRT. The second entry of each table destroys and frees.
void Delete(Object* object);

// The interfaces that TensorRT calls. The order of the virtual functions is part of their layout,
// and so are the functions that nobody overrides.

// What newer versions ask an interface first.
struct InterfaceInfo {
  const char* kind;
  int32_t major;
  int32_t minor;
};

// IVersionedInterface.
class VersionedInterface {
 public:
  virtual int32_t Language() const noexcept { return 0; }  // C++
  virtual InterfaceInfo Info() const noexcept = 0;
  virtual ~VersionedInterface() = default;
};

// ILogger up to version 10.
class PlainLogger {
 public:
  virtual void Log(Severity severity, const char* text) noexcept = 0;
  virtual ~PlainLogger() = default;
};

// ILogger since version 11.
class VersionedLogger : public VersionedInterface {
 public:
  InterfaceInfo Info() const noexcept override { return {"ILogger", 1, 0}; }
  virtual void Log(Severity severity, const char* text) noexcept = 0;
};

// IOutputAllocator: memory for outputs whose size is known only once they are computed.
class OutputAllocator : public VersionedInterface {
 public:
  InterfaceInfo Info() const noexcept override { return {"IOutputAllocator", 1, 0}; }
  virtual void* Reallocate(const char* tensor, void* memory, uint64_t size,
                           uint64_t alignment) noexcept = 0;
  virtual void* ReallocateAsync(const char* tensor, void* memory, uint64_t size, uint64_t alignment,
                                void* /*stream*/) {
    return Reallocate(tensor, memory, size, alignment);
  }
  virtual void NotifyShape(const char* tensor, const Dims& dims) noexcept = 0;
};

}  // namespace nereid::tensorrt
