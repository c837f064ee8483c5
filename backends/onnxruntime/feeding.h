// SPDX-License-Identifier: Apache-2.0
// Makes ONNX Runtime's values of the inputs of one execution.
#pragma once

#include <vector>

#include "backend_kit/batch.h"
#include "backend_kit/tensors.h"
#include "onnxruntime_backend/gathering.h"
#include "onnxruntime_backend/plan.h"

namespace nereid::onnxruntime {

// A member of the instance that each execution reuses. Confined to the thread that executes.
class Feeding {
 public:
  // All outlive this.
  Feeding(const Ports& ports, const Gathering& gathering, const OrtMemoryInfo* memory_info,
          const Session& session)
      : ports_(ports), gathering_(gathering), memory_info_(memory_info), session_(session) {}

  // Returns values for the plan's inputs, valid until Release. A request with invalid data fails,
  // and its rows are zeros. Fails if the whole execution must fail.
  backend::Error Fill(backend::Batch& batch, Plan& plan, std::vector<const OrtValue*>* values);
  // Frees the values that Fill made. Called after the execution.
  void Release() { owned_values_.clear(); }

 private:
  backend::Result<const OrtValue*> FillStrings(size_t i, const PlannedInput& input);
  backend::Result<const OrtValue*> FillFixed(backend::Batch& batch, size_t i, PlannedInput& input);
  // Makes a value of memory of the session's GPU.
  backend::Result<const OrtValue*> FillFromGpu(const PlannedInput& input, const char* data);
  backend::Result<const OrtValue*> FillBatchInput(const PlannedInput& input);
  void Copy(backend::Batch& batch, size_t i, char* to);

  const Ports& ports_;
  const Gathering& gathering_;
  const OrtMemoryInfo* const memory_info_;
  const Session& session_;
  // By port: copies of inputs that were not contiguous.
  std::vector<backend::ScratchBuffer> gathered_;
  std::vector<Owned<OrtValue>> owned_values_;
};

}  // namespace nereid::onnxruntime
