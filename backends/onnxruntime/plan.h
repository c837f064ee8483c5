// SPDX-License-Identifier: Apache-2.0
// Everything about an execution that depends only on its shapes and on which outputs it is for. A
// server sees the same few shapes over and over; for those, names and shapes are set up once, and
// smaller tensors live in memory that is registered with ONNX Runtime once.
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

// Up to this size a copy is cheaper than making an OrtValue around memory that comes along.
inline constexpr uint64_t kCheapCopyBytes = 4 * 1024;
// Up to this size a plan keeps memory for tensors that have to be copied anyway, because they are
// put together from, or divided among, several requests.
inline constexpr uint64_t kKeptTensorBytes = 64 * 1024;

// A tensor of the model with what is asked about it all the time. Immutable.
struct Port {
  TensorInfo info;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  uint32_t element_size = 0;  // 0 for strings
  // An output whose shape the model states but for the batch dimension.
  bool fixed_shape = false;
  // What the configuration calls the shape of a tensor that has no dimensions in the model.
  std::vector<int64_t> scalar_shape;
  // An input whose requests' elements follow each other in one dimension (allow_ragged_batch).
  bool is_ragged = false;
  // An input or output that is a state, kept by the server from request to request.
  bool is_state = false;
  // An output that responses may have; a state need not be one.
  bool is_declared = true;
  // An output that is divided by the shapes of an input.
  std::optional<backend::BatchOutput> scatter;

  bool is_string() const { return info.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING; }
};

// A batch input and the model's inputs that show it. Immutable.
struct BatchInputPort {
  backend::BatchInput spec;
  std::vector<size_t> inputs;
  size_t source = 0;  // input
};

// Inputs (those that may be overridden last) and outputs (sorted by name, the order of responses)
// of a model. Immutable.
struct Ports {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<BatchInputPort> batch_inputs;

  Ports(const Signature& signature, const backend::ModelConfig& config);
  // The position of a name, at or after which `hint` is tried first; -1 when there is none.
  static int Find(const std::vector<Port>& ports, size_t hint, std::string_view name);

 private:
  void AddOutputs(const Signature& signature, const backend::ModelConfig& config);
  void AddStates(const Signature& signature, const backend::ModelConfig& config);
  void AddBatchInputs(const backend::ModelConfig& config);
};

// Memory that a plan keeps for a tensor, and the OrtValue around it; made when first needed.
struct KeptTensor {
  // Whether a tensor of this size is worth keeping memory for, in an execution of `requests`.
  static bool Suits(uint64_t byte_size, size_t requests) {
    return byte_size <= (requests == 1 ? kCheapCopyBytes : kKeptTensorBytes);
  }
  // Makes memory and value unless they are there.
  backend::Error Prepare(const OrtMemoryInfo* memory_info, const Port& port,
                         std::span<const int64_t> shape, uint64_t byte_size);

  backend::ScratchBuffer memory;
  char* data = nullptr;  // in memory
  Owned<OrtValue> value;
};

// One input of one execution: its shape, size and memory.
struct PlannedInput {
  size_t port = 0;
  int batch_input = -1;        // made of the batch, not brought by requests: its position in Ports
  std::vector<int64_t> shape;  // of the whole batch
  uint64_t byte_size = 0;      // of the whole batch; 0 for strings
  KeptTensor kept;
};

// One output of one execution, as far as it is known beforehand.
struct PlannedOutput {
  size_t port = 0;
  // What the model made of these input shapes before; only for outputs of fixed shape.
  bool shape_known = false;
  std::vector<int64_t> shape;
  uint64_t byte_size = 0;
  KeptTensor kept;
};

// Confined to the instance it belongs to.
struct Plan {
  std::vector<int64_t> key;
  std::vector<PlannedInput> inputs;
  std::vector<PlannedOutput> outputs;
  std::vector<const char*> input_names;
  std::vector<const char*> output_names;
  // Set when an output turned out to vary: from then on ONNX Runtime allocates all of them.
  bool outputs_vary = false;

  // Notes the shape that output `o` had, so that the next execution can bring memory along for it.
  backend::Error Learn(size_t o, const Ports& ports, std::span<const int64_t> shape);
  void ForgetOutputShapes();
};

// The most recent plans of an instance, bounded in number: shapes come from clients.
class PlanCache {
 public:
  // The plan for `key`, or null.
  Plan* Find(std::span<const int64_t> key);
  // Adds a plan, dropping the one that was not used for longest if there are too many.
  Plan* Add(std::unique_ptr<Plan> plan);

 private:
  static constexpr size_t kMostPlans = 32;
  std::vector<std::unique_ptr<Plan>> plans_;  // most recently used first
};

}  // namespace nereid::onnxruntime
