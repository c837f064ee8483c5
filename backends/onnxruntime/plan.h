// SPDX-License-Identifier: Apache-2.0
// The parts of an execution that depend only on its shapes and its requested outputs. A server sees
// the same few shapes repeatedly. For those, names and shapes are prepared once, and smaller
// tensors use memory that is registered with ONNX Runtime once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend_kit/batch_inputs.h"
#include "backend_kit/config.h"
#include "backend_kit/tensors.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// Up to this size a copy is cheaper than making an OrtValue for the request's own memory.
inline constexpr uint64_t kCheapCopyBytes = 4 * 1024;
// Up to this size a plan keeps memory for tensors that must be copied anyway, because they combine
// several requests.
inline constexpr uint64_t kKeptTensorBytes = 64 * 1024;

// A tensor of the model with properties that are read often. Immutable.
struct Port {
  TensorInfo info;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  uint32_t element_size = 0;  // 0 for strings
  // For an output: whether the model declares its shape except for the batch dimension.
  bool fixed_shape = false;
  // The configuration's shape of a tensor that has no dimensions in the model.
  std::vector<int64_t> scalar_shape;
  // For an input: whether the requests' elements are concatenated in one dimension
  // (allow_ragged_batch).
  bool is_ragged = false;
  // Whether it is a state, which the server keeps from request to request.
  bool is_state = false;
  // For an output: whether responses may contain it; a state need not be in responses.
  bool is_declared = true;
  // For an output that is split by the shapes of an input.
  std::optional<backend::BatchOutput> scatter;

  bool is_string() const { return info.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING; }
};

// A batch input and the model's inputs that receive it. Immutable.
struct BatchInputPort {
  backend::BatchInput spec;
  std::vector<size_t> inputs;
  size_t source = 0;  // index of an input
};

// The inputs (initializers that may be overridden come last) and outputs (sorted by name, the order
// of responses) of a model. Immutable.
struct Ports {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<BatchInputPort> batch_inputs;

  Ports(const Signature& signature, const backend::ModelConfig& config);
  // Returns the position of a name, or -1. The search begins at `hint`.
  static int Find(const std::vector<Port>& ports, size_t hint, std::string_view name);

 private:
  void AddOutputs(const Signature& signature, const backend::ModelConfig& config);
  void AddStates(const Signature& signature, const backend::ModelConfig& config);
  void AddBatchInputs(const backend::ModelConfig& config);
};

// Memory that a plan keeps for a tensor, and its OrtValue; made at the first use.
struct KeptTensor {
  // Whether a tensor of this size is worth keeping memory for, in an execution of `requests`.
  static bool Suits(uint64_t byte_size, size_t requests) {
    return byte_size <= (requests == 1 ? kCheapCopyBytes : kKeptTensorBytes);
  }
  // Makes memory and value unless they exist.
  backend::Error Prepare(const OrtMemoryInfo* memory_info, const Port& port,
                         std::span<const int64_t> shape, uint64_t byte_size);

  backend::ScratchBuffer memory;
  char* data = nullptr;  // points into memory
  Owned<OrtValue> value;
};

// One input of one execution: its shape, size and memory.
struct PlannedInput {
  size_t port = 0;
  int batch_input =
      -1;  // its position in Ports if it is computed from the batch instead of read from requests
  std::vector<int64_t> shape;  // of the whole batch
  uint64_t byte_size = 0;      // of the whole batch; 0 for strings
  bool is_passed_on = false;   // whether it is an output as well, which takes its value from here
  KeptTensor kept;
};

// One output of one execution, as far as it is known in advance.
struct PlannedOutput {
  size_t port = 0;
  // The position in Plan::inputs of the input that it is, unchanged; -1 if operators make it.
  int passed_on = -1;
  // The shape of an earlier output for these input shapes; only for outputs of fixed shape.
  bool shape_known = false;
  std::vector<int64_t> shape;
  uint64_t byte_size = 0;
  KeptTensor kept;
};

// A plan. Confined to its instance.
struct Plan {
  std::vector<int64_t> key;
  std::vector<PlannedInput> inputs;
  std::vector<PlannedOutput> outputs;
  std::vector<const char*> input_names;
  std::vector<const char*> output_names;  // of the outputs that operators make
  // Set when an output's shape turned out to vary: from then on ONNX Runtime allocates all outputs.
  bool outputs_vary = false;

  // Remembers the shape of output `o`, so that the next execution can provide memory for it.
  backend::Error Learn(size_t o, const Ports& ports, std::span<const int64_t> shape);
  void ForgetOutputShapes();
};

// The most recent plans of an instance. Their number is bounded, because shapes come from clients.
class PlanCache {
 public:
  // Returns the plan for `key`, or null.
  Plan* Find(std::span<const int64_t> key);
  // Adds a plan and drops the least recently used one if there are too many.
  Plan* Add(std::unique_ptr<Plan> plan);

 private:
  static constexpr size_t kMaxPlans = 32;
  std::vector<std::unique_ptr<Plan>> plans_;  // most recently used first
};

}  // namespace nereid::onnxruntime
