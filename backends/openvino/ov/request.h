// SPDX-License-Identifier: Apache-2.0
// Runs of a compiled model.
#pragma once

#include <openvino/openvino.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "openvino_backend/program.h"

namespace nereid::openvino {

// A request of OpenVINO with memory for its outputs.
class OvRequest : public Request {
 public:
  // `signature`, that of the compiled model, outlives this. Throws what OpenVINO throws.
  OvRequest(ov::CompiledModel& compiled, const Signature& signature);

  backend::Error Run(std::span<const CallInput> inputs) override;
  backend::Result<CallOutput> Output(size_t o) override;

 private:
  struct OutputSlot {
    ov::Tensor tensor;  // the memory of the results
    // Whether somebody may still read the last one, so that the next run needs other memory.
    bool is_lent = false;
    std::vector<int64_t> shape;
    std::vector<std::string_view> strings;
  };

  backend::Error SetInput(size_t i, const CallInput& input);
  // Outputs are always written to memory that was made here. Where an output is an input unchanged,
  // the library would otherwise write later results to the memory of earlier inputs.
  void GiveMemory(size_t o, ov::Tensor tensor);
  void RenewOutputs();
  CallOutput ReadOutput(size_t o);

  const Signature& signature_;
  const std::vector<ov::Output<const ov::Node>> input_ports_;
  ov::InferRequest request_;
  std::vector<OutputSlot> outputs_;
  bool is_stateful_ = false;
};

}  // namespace nereid::openvino
