// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/batch_probe.h"

#include <memory>
#include <vector>

#include "onnxruntime_backend/data_types.h"
#include "onnxruntime_backend/session_runner.h"

namespace nereid::onnxruntime {

using backend::BatchVerdict;
using backend::ModelTensor;
using backend::Result;

namespace {

void Describe(const std::vector<TensorInfo>& infos, bool is_output, std::vector<ModelTensor>& to) {
  for (const TensorInfo& info : infos) {
    to.push_back({.name = info.name,
                  .type = ToServerType(info.type),
                  .dims = info.dims,
                  .symbols = info.symbols,
                  .is_output = is_output});
  }
}

Result<BatchVerdict> Decide(const Session& session, int max_rows, const ProbeLimits& limits) {
  const Signature& signature = session.signature();
  std::vector<ModelTensor> tensors;
  Describe(signature.inputs, false, tensors);
  Describe(signature.outputs, true, tensors);
  if (auto refusal = backend::RefuseByDescription(tensors)) {
    return *std::move(refusal);
  }
  NEREID_KIT_ASSIGN(const std::unique_ptr<SessionRunner> runner,
                    SessionRunner::Create(session, limits));
  BatchVerdict verdict = backend::ProbeBatching(std::span(tensors).first(signature.inputs.size()),
                                                {.max_rows = max_rows}, *runner);
  runner->GiveBack().Ignore();  // a session without an arena has nothing to free
  return verdict;
}

}  // namespace

BatchVerdict DecideBatching(const Session& session, int max_rows, const ProbeLimits& limits) {
  try {
    auto verdict = Decide(session, max_rows, limits);
    if (verdict.ok()) {
      return std::move(verdict).value();
    }
    return BatchVerdict::No("does_not_run", verdict.TakeError().message());
  } catch (const std::exception& e) {
    return BatchVerdict::No("does_not_run", e.what());
  }
}

}  // namespace nereid::onnxruntime
