// SPDX-License-Identifier: Apache-2.0
// A plan that is loaded on a device, over TensorRT's binary interface (layout.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorrt_backend/context.h"
#include "tensorrt_backend/driver.h"
#include "tensorrt_backend/library.h"

namespace nereid::tensorrt {

// The shapes, and for shape tensors the values, that an input may have with one optimization
// profile. Immutable.
struct ProfileRange {
  Dims min;
  Dims opt;
  Dims max;
  std::vector<int64_t> min_values;  // of shape tensors only, like the following
  std::vector<int64_t> opt_values;
  std::vector<int64_t> max_values;
};

// An input or output of an engine. Immutable.
struct TensorInfo {
  std::string name;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;  // INVALID: no such type in Triton
  bool is_input = false;
  bool is_shape = false;  // whether its values, which are in the host's memory, determine shapes
  bool is_linear = true;  // whether its elements lie in the usual order
  std::string format;     // TensorRT's description
  Dims dims;              // -1 if variable
  std::vector<ProfileRange> profiles;  // of inputs; one for each optimization profile

  bool has_variable_dims() const;
};

// A plan to load.
struct Plan {
  const std::string& path;
  const PlanHeader& header;
  bool is_version_compatible;  // the library may run code that the plan contains
};

// A loaded plan. Thread-safe. The current device of a thread that uses it must be the engine's.
class Engine {
 public:
  // Loads a plan on a device; `dla_core` -1: none. `logger` outlives the engine.
  static backend::Result<std::shared_ptr<const Engine>> Load(std::shared_ptr<const Library> library,
                                                             const Device& device, int dla_core,
                                                             const Plan& plan, Logger& logger);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  int profile_count() const { return profile_count_; }
  bool is_refittable() const { return is_refittable_; }
  const Library& library() const { return *library_; }

  backend::Result<std::unique_ptr<Context>> NewContext() const;

 private:
  Engine(std::shared_ptr<const Library> library, const Device& device, Logger& logger)
      : library_(std::move(library)), device_(device), logger_(logger) {}

  backend::Error MakeRuntime(int dla_core, bool is_version_compatible);
  backend::Error Deserialize(const std::string& path, const PlanHeader& header);
  void ReadTensors();
  ProfileRange ReadProfile(const TensorInfo& tensor, int profile) const;
  std::vector<int64_t> ReadValues(const TensorInfo& tensor, int profile, ProfilePoint point,
                                  int64_t count) const;

  const std::shared_ptr<const Library> library_;
  const Device device_;
  Logger& logger_;
  Object* runtime_ = nullptr;
  Object* engine_ = nullptr;
  std::vector<TensorInfo> tensors_;
  int profile_count_ = 0;
  bool is_refittable_ = false;
};

// Returns the position of the tensor, or -1.
int FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name);

}  // namespace nereid::tensorrt
