// SPDX-License-Identifier: Apache-2.0
#include "python_backend/outputs.h"

#include <algorithm>

#include "backend_kit/shape.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;

// The names by their numbers in the C API.
constexpr std::string_view kDatatypes[] = {"INVALID", "BOOL", "UINT8", "UINT16", "UINT32",
                                           "UINT64",  "INT8", "INT16", "INT32",  "INT64",
                                           "FP16",    "FP32", "FP64",  "BYTES",  "BF16"};
static_assert(std::size(kDatatypes) == TRITONSERVER_TYPE_BF16 + 1);

// Parses the data_type of a configuration; INVALID if there is none.
TRITONSERVER_DataType DatatypeOf(std::string_view text) {
  if (text == "TYPE_STRING") return TRITONSERVER_TYPE_BYTES;
  constexpr std::string_view kPrefix = "TYPE_";
  if (!text.starts_with(kPrefix)) return TRITONSERVER_TYPE_INVALID;
  const auto found = std::ranges::find(kDatatypes, text.substr(kPrefix.size()));
  return found == std::end(kDatatypes)
             ? TRITONSERVER_TYPE_INVALID
             : static_cast<TRITONSERVER_DataType>(found - std::begin(kDatatypes));
}

bool Fit(std::span<const int64_t> shape, std::span<const int64_t> dims) {
  return std::ranges::equal(shape, dims,
                            [](int64_t has, int64_t says) { return says == -1 || has == says; });
}

}  // namespace

Result<OutputRules> OutputRules::Create(const std::string& model,
                                        const backend::ModelConfig& config, bool checks) {
  OutputRules rules;
  const std::string text = config.Parameter("CHECK_OUTPUTS").value_or(checks ? "yes" : "no");
  if (text != "yes" && text != "no") {
    return Error::InvalidArgument(StrCat("parameter CHECK_OUTPUTS of model '", model,
                                         "' must be yes or no, not '", text, "'"));
  }
  rules.checks_ = text == "yes";
  rules.model_ = model;
  rules.has_batch_ = config.max_batch_size() > 0;
  rules.is_sequential_ = backend::Find(config.json(), "sequence_batching") != nullptr;
  const rapidjson::Value* const policy = backend::Find(config.json(), "model_transaction_policy");
  rules.is_decoupled_ = policy != nullptr && backend::BoolMember(*policy, "decoupled");
  for (const rapidjson::Value& output : config.tensors("output")) {
    Output rule{.name = std::string(backend::StringMember(output, "name")),
                .datatype = DatatypeOf(backend::StringMember(output, "data_type")),
                .dims = backend::ModelDims(output)};
    rule.may_lack_batch = rules.has_batch_ && !rule.dims.empty() && rule.dims[0] == -1;
    rules.outputs_.push_back(std::move(rule));
  }
  rules.has_warned_ = std::make_shared<std::atomic<bool>>(false);
  return rules;
}

int64_t OutputRules::Find(std::string_view name, size_t guess) const {
  if (guess < outputs_.size() && outputs_[guess].name == name) return static_cast<int64_t>(guess);
  const auto found = std::ranges::find(outputs_, name, &Output::name);
  return found == outputs_.end() ? -1 : found - outputs_.begin();
}

OutputRules::Set OutputRules::OwedTo(TRITONBACKEND_Request* request) const {
  Set owed;
  if (!checks_ || is_decoupled_) return owed;
  uint32_t count = 0;
  if (!Error(TRITONBACKEND_RequestOutputCount(request, &count)).ok()) return owed;
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    if (!Error(TRITONBACKEND_RequestOutputName(request, i, &name)).ok()) continue;
    const int64_t at = Find(name, i);
    if (at >= 0 && static_cast<size_t>(at) < kMaxSet) owed.set(static_cast<size_t>(at));
  }
  return owed;
}

Error OutputRules::CheckTensor(const Output& output, const Tensor& tensor) const {
  if (tensor.datatype != output.datatype && output.datatype != TRITONSERVER_TYPE_INVALID) {
    return Error::Internal(StrCat("output '", output.name, "' of model '", model_,
                                  "' has data type ", kDatatypes[tensor.datatype],
                                  ", but its configuration says ", kDatatypes[output.datatype]));
  }
  const std::span<const int64_t> shape = tensor.shape;
  if (!has_batch_ && Fit(shape, output.dims)) return {};
  // Each response is for one request and is not split, so the model decides its batch dimension:
  // one picture in, all the faces in it out.
  if (has_batch_ && !shape.empty() && Fit(shape.subspan(1), output.dims)) return {};
  if (output.may_lack_batch && Fit(shape, output.dims)) {
    if (!has_warned_->exchange(true, std::memory_order_relaxed)) {
      backend::LogWarning(StrCat("output '", output.name, "' of model '", model_, "' has shape ",
                                 backend::ShapeToString(shape),
                                 ", which lacks the batch dimension; it is passed on as it is"));
    }
    return {};
  }
  std::vector<int64_t> dims = output.dims;
  if (has_batch_) dims.insert(dims.begin(), -1);
  return Error::Internal(StrCat("output '", output.name, "' of model '", model_, "' has shape ",
                                backend::ShapeToString(shape), ", but its configuration says ",
                                backend::ShapeToString(dims),
                                has_batch_ ? ", the batch dimension first" : ""));
}

Result<OutputRules::Set> OutputRules::CheckTensors(const ModelResponse& response) const {
  Set found;
  for (size_t i = 0; i < response.tensors.size(); ++i) {
    const Tensor& tensor = response.tensors[i];
    const int64_t at = Find(tensor.name, i);
    if (at < 0) continue;  // the server will refuse it
    NEREID_KIT_TRY(CheckTensor(outputs_[static_cast<size_t>(at)], tensor).Release());
    if (static_cast<size_t>(at) >= kMaxSet) continue;
    if (found.test(static_cast<size_t>(at))) {
      return Error::Internal(
          StrCat("output '", tensor.name, "' of model '", model_, "' is in one response twice"));
    }
    found.set(static_cast<size_t>(at));
  }
  return found;
}

bool OutputRules::MayLack(const ModelResponse& response) const {
  // Each of many responses may have other outputs, and a response of a sequence may only
  // acknowledge its request.
  return is_decoupled_ || (is_sequential_ && response.tensors.empty());
}

Error OutputRules::CheckOwed(const Set& owed, const Set& found) const {
  const Set lacking = owed & ~found;
  for (size_t i = 0; lacking.any() && i < kMaxSet; ++i) {
    if (!lacking.test(i)) continue;
    return Error::Internal(
        StrCat("the response of model '", model_, "' lacks output '", outputs_[i].name, "'"));
  }
  return {};
}

Error OutputRules::Check(const ModelResponse& response, TRITONBACKEND_Request* request) const {
  if (!checks_ || response.kind != ResponseKind::kTensors) return {};
  NEREID_KIT_ASSIGN(const Set found, CheckTensors(response));
  if (MayLack(response) || found.count() >= std::min(outputs_.size(), kMaxSet)) return {};
  return CheckOwed(OwedTo(request), found);
}

Error OutputRules::Check(const ModelResponse& response, const Set& owed) const {
  if (!checks_ || response.kind != ResponseKind::kTensors) return {};
  NEREID_KIT_ASSIGN(const Set found, CheckTensors(response));
  return MayLack(response) ? Error() : CheckOwed(owed, found);
}

}  // namespace nereid::python
