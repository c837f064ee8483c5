// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/batch_trial.h"

#include "backend_kit/batch_probe.h"

namespace nereid::openvino {

using backend::BatchVerdict;
using backend::HostTensor;
using backend::ModelTensor;
using backend::Result;
using backend::StrCat;

namespace {

// Runs generated rows.
class Runner : public backend::TimedRunner {
 public:
  Runner(const Signature& signature, Request& request) : signature_(signature), request_(request) {}

 private:
  Result<std::vector<HostTensor>> RunInTime(std::span<const HostTensor> inputs) override {
    std::vector<CallInput> call;
    for (const HostTensor& input : inputs) {
      call.push_back({.is_present = true, .shape = input.shape, .data = input.bytes.data()});
    }
    NEREID_KIT_TRY(request_.Run(call));
    std::vector<HostTensor> outputs;
    for (const TensorInfo& info : signature_.outputs) {
      NEREID_KIT_ASSIGN(const CallOutput output, request_.Output(outputs.size()));
      NEREID_KIT_ASSIGN(HostTensor tensor,
                        Copy(info.name, info.datatype, output.shape, output.data, output.strings));
      outputs.push_back(std::move(tensor));
    }
    return outputs;
  }

  const Signature& signature_;
  Request& request_;
};

std::vector<ModelTensor> Describe(const Signature& signature) {
  std::vector<ModelTensor> tensors;
  const auto add = [&](const std::vector<TensorInfo>& infos, bool is_output) {
    for (const TensorInfo& info : infos) {
      tensors.push_back({.name = info.name,
                         .type = info.datatype,
                         .dims = info.dims,
                         .symbols = {},
                         .is_output = is_output});
    }
  };
  add(signature.inputs, false);
  add(signature.outputs, true);
  return tensors;
}

// Numbers that are no whole numbers are never positions in other tensors. Of positions, OpenVINO's
// kernels do not check all.
bool IsHarmless(TRITONSERVER_DataType type) {
  return type == TRITONSERVER_TYPE_FP16 || type == TRITONSERVER_TYPE_FP32 ||
         type == TRITONSERVER_TYPE_FP64 || type == TRITONSERVER_TYPE_BF16;
}

Result<BatchVerdict> Decide(Program& program, int max_rows) {
  const Signature& signature = program.signature();
  const std::vector<ModelTensor> tensors = Describe(signature);
  if (auto refusal = backend::RefuseByDescription(tensors)) {
    return *std::move(refusal);
  }
  for (const TensorInfo& input : signature.inputs) {
    if (!IsHarmless(input.datatype)) {
      return BatchVerdict::No("unsupported_type",
                              StrCat("input '", input.name, "' has the type ", input.type,
                                     ", of which no rows are made up for a trial"));
    }
  }
  NEREID_KIT_ASSIGN(const std::unique_ptr<Request> request, program.NewRequest());
  Runner runner(signature, *request);
  return backend::ProbeBatching(std::span(tensors).first(signature.inputs.size()),
                                {.max_rows = max_rows}, runner);
}

}  // namespace

BatchVerdict TryBatches(Program& program, int max_rows) {
  try {
    auto verdict = Decide(program, max_rows);
    return verdict.ok() ? std::move(verdict).value()
                        : BatchVerdict::No("does_not_run", verdict.TakeError().message());
  } catch (const std::exception& e) {
    return BatchVerdict::No("does_not_run", e.what());
  }
}

}  // namespace nereid::openvino
