// SPDX-License-Identifier: Apache-2.0
// The way of an instance's outputs from the device to responses and states.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend_kit/gather.h"
#include "backend_kit/scatter.h"
#include "tensorrt_backend/execution.h"

namespace nereid::tensorrt {

// What the outputs come from and go to. Everything outlives the outputs.
struct OutputParts {
  const backend::Ports& ports;
  const Binding& binding;
  Execution& execution;
  backend::Batch& batch;
  backend::Gathering& gathering;
  backend::Scattering& scattering;
  int device;
};

// The outputs of one execution at a time. Confined to the thread that executes.
class Outputs {
 public:
  explicit Outputs(const OutputParts& parts)
      : parts_(parts), computed_(parts.ports.outputs.size()) {}

  // Starts to copy what is wanted to the host. REQUIRES: the computation has been started.
  backend::Error Fetch();
  // Copies the outputs whose shape is known only after the computation, and waits for the copies.
  backend::Error FetchComputedShapes();
  // Gives them to the responses, or to the states of sequences.
  void DealOut(bool to_states);

 private:
  // An output of the last execution.
  struct Computed {
    std::vector<int64_t> shape;
    std::shared_ptr<char> host;  // null if only devices want it
    bool is_wanted = false;
  };

  backend::Error FetchOne(size_t o);
  void DealOutShapeTensor(size_t o, const Computed& computed);

  const OutputParts parts_;
  std::vector<Computed> computed_;  // in the ports' order
};

}  // namespace nereid::tensorrt
