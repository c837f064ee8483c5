// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/completion.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include "backend_kit/shape.h"

namespace nereid::pytorch {

using backend::Error;
using backend::InputPort;
using backend::Result;
using backend::StrCat;

namespace {

// A configuration may ask for more than anyone wants to allocate for a trial.
constexpr uint64_t kMaxTrialBytes = uint64_t{64} << 20;

// The inputs of a call with zeros. Everything of `inputs` refers to the rest.
struct Zeros {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::unique_ptr<uint64_t[]>> memory;
  std::vector<std::vector<std::string_view>> strings;
  std::vector<CallInput> inputs;
};

// Variable dimensions have `size` elements, batches `rows`.
Result<Zeros> MakeZeros(const backend::Ports& ports, bool is_batching, int64_t size, int64_t rows) {
  Zeros zeros;
  for (const InputPort& port : ports.inputs) {
    std::vector<int64_t> shape = port.dims;
    std::replace(shape.begin(), shape.end(), int64_t{-1}, size);
    if (is_batching) {
      shape.insert(shape.begin(), rows);
    }
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(shape));
    const uint64_t limit = kMaxTrialBytes / sizeof(uint64_t);
    if (static_cast<uint64_t>(elements) > limit) {
      return Error::InvalidArgument(StrCat("input '", port.name, "' is too large for a trial"));
    }
    // Enough for the largest elements, and aligned for them.
    const auto count = static_cast<size_t>(elements);
    zeros.shapes.push_back(std::move(shape));
    zeros.memory.push_back(std::make_unique<uint64_t[]>(count + 1));
    zeros.strings.emplace_back(port.datatype == TRITONSERVER_TYPE_BYTES ? count : 0);
    zeros.inputs.push_back({.name = port.name,
                            .is_present = true,
                            .datatype = port.datatype,
                            .shape = zeros.shapes.back(),
                            .data = reinterpret_cast<const char*>(zeros.memory.back().get()),
                            .strings = zeros.strings.back()});
  }
  return zeros;
}

// "[scores][0]" → "scores[0]".
std::string NameOf(const Signature& signature, const ResultTensor& tensor, size_t index) {
  const size_t end = tensor.path.find(']');
  if (signature.result.Required().kind != ValueType::Kind::kDict || end == std::string::npos) {
    return StrCat("OUTPUT__", index);
  }
  return tensor.path.substr(1, end - 1) + tensor.path.substr(end + 1);
}

// The dimensions of an output whose tensors in two calls are `first` and `second`.
Result<std::vector<int64_t>> DimsOf(const std::string& name, const ResultTensor& first,
                                    const ResultTensor& second, bool is_batching) {
  if (first.datatype == TRITONSERVER_TYPE_INVALID || first.datatype != second.datatype ||
      first.shape.size() != second.shape.size()) {
    return Error::InvalidArgument(
        StrCat("output '", name, "' is ", first.type.empty() ? "not always the same" : first.type));
  }
  std::vector<int64_t> dims;
  for (size_t d = is_batching ? 1 : 0; d < first.shape.size(); ++d) {
    const bool is_fixed =
        first.shape[d] == second.shape[d] && first.datatype != TRITONSERVER_TYPE_BYTES;
    dims.push_back(is_fixed ? first.shape[d] : -1);
  }
  const bool has_rows = !first.shape.empty() && first.shape[0] == 1 && second.shape[0] == 2;
  if (is_batching && (!has_rows || dims.empty())) {
    return Error::InvalidArgument(StrCat("output '", name,
                                         "' does not have a row for each row of a ",
                                         "batch and a dimension behind it; max_batch_size is set"));
  }
  if (dims.empty()) {
    dims.push_back(1);
  }
  return dims;
}

}  // namespace

Result<std::vector<FoundOutput>> FindOutputs(const Program& program,
                                             const std::vector<ValueNode>& arguments,
                                             const backend::Ports& ports, bool is_batching) {
  std::shared_ptr<const Results> results[2];
  for (int trial = 0; trial < 2; ++trial) {
    NEREID_KIT_ASSIGN(const Zeros zeros, MakeZeros(ports, is_batching, 2 + trial, 1 + trial));
    NEREID_KIT_ASSIGN(results[trial], program.Run(arguments, zeros.inputs, true));
  }
  if (results[0]->tensors.size() != results[1]->tensors.size()) {
    return Error::InvalidArgument("the number of results depends on the inputs");
  }
  std::vector<FoundOutput> outputs;
  for (size_t o = 0; o < results[0]->tensors.size(); ++o) {
    const ResultTensor& tensor = results[0]->tensors[o];
    FoundOutput output{
        .name = NameOf(program.signature(), tensor, o), .datatype = tensor.datatype, .dims = {}};
    NEREID_KIT_ASSIGN(output.dims,
                      DimsOf(output.name, tensor, results[1]->tensors[o], is_batching));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace nereid::pytorch
