// SPDX-License-Identifier: Apache-2.0
// Whether what a model answers is what its configuration says: each output with its type and shape,
// and all that were asked for. docs/python.md says what is let through, and why.
#pragma once

#include <atomic>
#include <bitset>
#include <memory>
#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "python_backend/decode.h"

namespace nereid::python {

// Immutable, but for what was warned of. Thread-safe.
class OutputRules {
 public:
  // Without rules: everything is right.
  OutputRules() = default;
  // Those of a model's configuration. `checks` is what holds where the configuration does not say.
  static backend::Result<OutputRules> Create(const std::string& model,
                                             const backend::ModelConfig& config, bool checks);

  // Outputs by their places in the configuration. Whether more of them than this are there is not
  // asked.
  static constexpr size_t kMaxSet = 256;
  using Set = std::bitset<kMaxSet>;
  // Those that a request asks for, as far as it is owed any.
  Set OwedTo(TRITONBACKEND_Request* request) const;

  // Success, or an error that names the first output that is wrong or lacking. Only responses with
  // tensors are looked at. `request` must not be released yet.
  backend::Error Check(const ModelResponse& response, TRITONBACKEND_Request* request) const;
  // The same for a request that may be gone.
  backend::Error Check(const ModelResponse& response, const Set& owed) const;

 private:
  // An output as the model's configuration describes it.
  struct Output {
    std::string name;
    TRITONSERVER_DataType datatype;
    std::vector<int64_t> dims;    // without the batch dimension; -1 for any
    bool may_lack_batch = false;  // its first dimension may stand for both
  };

  // The place of the output with this name, which is looked for at `guess` first; -1 if there is
  // none.
  int64_t Find(std::string_view name, size_t guess) const;
  backend::Error CheckTensor(const Output& output, const Tensor& tensor) const;
  // The outputs that the response has.
  backend::Result<Set> CheckTensors(const ModelResponse& response) const;
  backend::Error CheckOwed(const Set& owed, const Set& found) const;
  // Whether the response may lack outputs that were asked for.
  bool MayLack(const ModelResponse& response) const;

  bool checks_ = false;
  bool has_batch_ = false;
  bool is_decoupled_ = false;
  bool is_sequential_ = false;
  std::string model_;
  std::vector<Output> outputs_;
  std::shared_ptr<std::atomic<bool>> has_warned_;  // of a lacking batch dimension
};

}  // namespace nereid::python
