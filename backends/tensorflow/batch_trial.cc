// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/batch_trial.h"

#include "backend_kit/batch_probe.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

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
    std::vector<std::vector<std::string_view>> texts(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      texts[i].assign(inputs[i].strings.begin(), inputs[i].strings.end());
      call.push_back({.is_present = true,
                      .shape = inputs[i].shape,
                      .data = inputs[i].bytes,
                      .strings = texts[i]});
    }
    const std::vector<char> wanted(signature_.outputs.size(), 1);
    NEREID_KIT_TRY(request_.Run(call, wanted));
    auto outputs = ReadAll();
    request_.Clear();
    return outputs;
  }

  Result<std::vector<HostTensor>> ReadAll() {
    std::vector<HostTensor> outputs;
    for (const auto& [name, info] : signature_.outputs) {
      const CallOutput output = request_.Output(outputs.size());
      NEREID_KIT_ASSIGN(HostTensor tensor,
                        Copy(name, OurType(info.type), output.shape, output.data, output.strings));
      outputs.push_back(std::move(tensor));
    }
    return outputs;
  }

  const Signature& signature_;
  Request& request_;
};

std::vector<ModelTensor> Describe(const std::map<std::string, TensorInfo>& tensors,
                                  bool is_output) {
  std::vector<ModelTensor> all;
  for (const auto& [name, info] : tensors) {
    all.push_back({.name = name,
                   .type = OurType(info.type),
                   .dims = info.dims,
                   .symbols = {},
                   .is_output = is_output});
  }
  return all;
}

}  // namespace

std::optional<BatchVerdict> RefuseTrial(const Signature& signature) {
  for (const bool is_output : {false, true}) {
    for (const auto& [name, info] : is_output ? signature.outputs : signature.inputs) {
      const bool is_served =
          OurType(info.type) != TRITONSERVER_TYPE_INVALID && info.has_rank && !info.place.empty();
      if (!is_served) {
        return BatchVerdict::No("unsupported_type",
                                StrCat(is_output ? "output '" : "input '", name,
                                       "' has a type or shape that cannot be tried out"));
      }
    }
  }
  std::vector<ModelTensor> tensors = Describe(signature.inputs, false);
  const std::vector<ModelTensor> outputs = Describe(signature.outputs, true);
  tensors.insert(tensors.end(), outputs.begin(), outputs.end());
  return backend::RefuseByDescription(tensors);
}

BatchVerdict TryBatches(const Signature& signature, Request& request, int max_rows) {
  try {
    Runner runner(signature, request);
    return backend::ProbeBatching(Describe(signature.inputs, false), {.max_rows = max_rows},
                                  runner);
  } catch (const std::exception& e) {
    return BatchVerdict::No("does_not_run", e.what());
  }
}

}  // namespace nereid::tensorflow
