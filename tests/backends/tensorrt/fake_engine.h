// SPDX-License-Identifier: Apache-2.0
// What the stand-ins for TensorRT compute: "plans" are a real plan's header and lines of text.
//
//   input NAME TYPE DIMS PROFILE...       PROFILE is MIN/OPT/MAX; DIMS like -1x4, or "scalar"
//   shape_input NAME TYPE DIMS PROFILE... PROFILE is of values, like 1x2/4x2/8x2
//   output NAME TYPE DIMS OPERATION ARGUMENTS
//   shape_output NAME TYPE DIMS values ARGUMENT
//   option NAME VALUE                     dla_cores, refittable, format (of all tensors), fails (a
//                                         function that reports failure)
//
// Operations: copy A; add A B; fill S (ones, with the shape that S has as values); nonzero A (the
// elements of A that are not zero: their number is known only then); mean A (of each row).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fake_tensorrt {

struct Dims {
  int32_t count = 0;
  int64_t sizes[8] = {};
};

struct Range {
  std::vector<int64_t> min;
  std::vector<int64_t> opt;
  std::vector<int64_t> max;
};

struct Tensor {
  std::string name;
  int32_t type = 0;
  size_t element = 4;
  bool is_input = false;
  bool is_shape = false;
  std::vector<int64_t> dims;
  std::vector<Range> profiles;
  std::string operation;
  std::vector<std::string> arguments;
};

// Writes to the logger that a runtime was made with.
using Log = std::function<void(int severity, const std::string& text)>;
// What an execution context calls for outputs whose size is not known.
struct Allocator {
  std::function<void*(const char* tensor, uint64_t size)> allocate;
  std::function<void(const char* tensor, const Dims& dims)> notify;
};

struct Engine {
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> options;
  std::vector<int32_t> values32;  // returned last
  std::vector<int64_t> values64;

  const Tensor* Find(const char* name) const;
  int32_t ProfileCount() const;
  Dims ProfileShape(const char* name, int32_t profile, int32_t point) const;
  const std::vector<int64_t>& ProfileValues(const char* name, int32_t profile, int32_t point) const;
  bool Fails(const char* function) const;
};

// Returns null, and logs why, for what is not a plan of this version.
std::shared_ptr<Engine> Deserialize(const void* data, size_t size, int version, const Log& log);

struct Context {
  std::shared_ptr<Engine> engine;
  Log log;
  int32_t profile = 0;
  std::map<std::string, std::vector<int64_t>> shapes;
  std::map<std::string, void*> addresses;
  std::map<std::string, Allocator> allocators;

  bool SetProfile(int32_t index);
  bool SetInputShape(const char* name, const Dims& dims);
  Dims ShapeOf(const char* name) const;
  int32_t InferShapes();
  int64_t MaxOutputSize(const char* name) const;
  bool Enqueue(void* stream);

 private:
  std::vector<int64_t> InputShape(const Tensor& tensor) const;
  std::vector<int64_t> OutputShape(const Tensor& tensor) const;
  std::vector<int64_t> Values(const std::string& name) const;
};

Dims ToDims(const std::vector<int64_t>& sizes);
void Note(const std::string& line);

}  // namespace fake_tensorrt
