// SPDX-License-Identifier: Apache-2.0
// Checks that a model's responses match its configuration: each output has its type and shape, and
// all requested outputs are there. docs/python.md says what is accepted, and why.
#pragma once

#include <atomic>
#include <bitset>
#include <memory>
#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "python_backend/decode.h"

namespace nereid::python {

// Immutable, except for the record of warnings. Thread-safe.
class OutputRules {
 public:
  // Makes rules that accept everything.
  OutputRules() = default;
  // Makes the rules of a model's configuration. `checks` is the default if the configuration does
  // not say whether outputs are checked.
  static backend::Result<OutputRules> Create(const std::string& model,
                                             const backend::ModelConfig& config, bool checks);

  // A set of outputs, by their places in the configuration. Beyond this number it is not checked
  // whether an output is there.
  static constexpr size_t kMaxSet = 256;
  using Set = std::bitset<kMaxSet>;
  // Returns the outputs that the request is owed, among those it lists.
  Set OwedTo(TRITONBACKEND_Request* request) const;

  // Returns an error that names the first output that is wrong or missing. Only responses with
  // tensors are checked. REQUIRES: `request` is not released.
  backend::Error Check(const ModelResponse& response, TRITONBACKEND_Request* request) const;
  // The same check for a request that may have been released.
  backend::Error Check(const ModelResponse& response, const Set& owed) const;

 private:
  // An output as the model's configuration describes it.
  struct Output {
    std::string name;
    TRITONSERVER_DataType datatype;
    std::vector<int64_t> dims;    // without the batch dimension; -1 for any
    bool may_lack_batch = false;  // its first dimension may be either the batch or its own
  };

  // Returns the place of the output with this name, trying `guess` first; -1 if there is none.
  int64_t Find(std::string_view name, size_t guess) const;
  backend::Error CheckTensor(const Output& output, const Tensor& tensor) const;
  // Returns the outputs that the response has.
  backend::Result<Set> CheckTensors(const ModelResponse& response) const;
  backend::Error CheckOwed(const Set& owed, const Set& found) const;
  // Returns whether the response may lack requested outputs.
  bool MayLack(const ModelResponse& response) const;

  bool checks_ = false;
  bool has_batch_ = false;
  bool is_decoupled_ = false;
  bool is_sequential_ = false;
  std::string model_;
  std::vector<Output> outputs_;
  std::shared_ptr<std::atomic<bool>> has_warned_;  // about a missing batch dimension
};

}  // namespace nereid::python
