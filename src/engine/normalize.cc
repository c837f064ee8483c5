// SPDX-License-Identifier: Apache-2.0
#include "engine/normalize.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_set>

#include <fmt/core.h>

#include "core/gpu_inputs.h"
#include "core/model.h"

namespace nereid::engine {
namespace {

using base::InvalidArgumentError;
using base::Status;
using core::Model;
using core::ModelTensor;
using core::Request;
using core::RequestInput;

constexpr std::string_view kUnexpectedInput = "unexpected inference input";

// Returns "['a','b']", or `empty` if there are no names.
std::string QuotedList(const std::vector<std::string_view>& names, std::string_view empty) {
  if (names.empty()) return std::string(empty);
  std::string text = "[";
  for (const std::string_view name : names) {
    if (text.size() > 1) text += ',';
    text += fmt::format("'{}'", name);
  }
  return text + "]";
}

Status InputCountError(const Request& request) {
  const Model& model = *request.model;
  std::vector<std::string_view> got;
  for (const RequestInput& input : request.inputs) got.push_back(input.name);
  std::vector<std::string_view> missing;
  for (const ModelTensor& input : model.inputs()) {
    if (!input.is_optional && std::ranges::find(got, std::string_view(input.name)) == got.end()) {
      missing.push_back(input.name);
    }
  }
  const size_t all = model.inputs().size();
  const std::string expected = all == model.required_input_count()
                                   ? fmt::format("expected {} inputs", all)
                                   : fmt::format("expected number of inputs between {} and {}",
                                                 model.required_input_count(), all);
  // The list of missing inputs prints as "]" when it is empty, because clients know it that way.
  return InvalidArgumentError(fmt::format(
      "{} but got {} inputs for model '{}'. Got input(s) {}, but missing required input(s) {}. "
      "Please provide all required input(s).",
      expected, got.size(), model.name(), QuotedList(got, "[]"), QuotedList(missing, "]")));
}

Status DuplicateError(std::string_view kind, std::string_view name) {
  return InvalidArgumentError(fmt::format("{} '{}' already exists in request", kind, name));
}

// Uses a set instead of a search for each input, because a malicious request may have millions of
// inputs.
Status RefuseDuplicates(const std::vector<RequestInput>& inputs) {
  std::unordered_set<std::string_view> seen;
  for (const RequestInput& input : inputs) {
    if (!seen.insert(input.name).second) return DuplicateError("input", input.name);
  }
  return base::OkStatus();
}

// Sets the model_index of every input and sorts the inputs into the model's order.
Status MatchInputs(Request& request) {
  const Model& model = *request.model;
  if (request.inputs.size() > model.inputs().size()) {
    // Duplicates, if there are any, explain the error better.
    NEREID_RETURN_IF_ERROR(RefuseDuplicates(request.inputs));
  }
  if (request.inputs.size() > model.inputs().size() ||
      request.inputs.size() < model.required_input_count()) {
    return InputCountError(request);
  }
  bool in_order = true;
  size_t required = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    RequestInput& input = request.inputs[i];
    const int index = i < model.inputs().size() && model.inputs()[i].name == input.name
                          ? static_cast<int>(i)
                          : model.FindInput(input.name);
    if (index < 0) {
      return InvalidArgumentError(
          fmt::format("{} '{}' for model '{}'", kUnexpectedInput, input.name, model.name()));
    }
    input.model_index = static_cast<uint32_t>(index);
    if (!model.inputs()[input.model_index].is_optional) ++required;
    in_order = in_order && (i == 0 || request.inputs[i - 1].model_index < input.model_index);
  }
  if (!in_order) {
    std::ranges::sort(request.inputs, {}, &RequestInput::model_index);
    const auto twice = std::ranges::adjacent_find(request.inputs, {}, &RequestInput::model_index);
    if (twice != request.inputs.end()) return DuplicateError("input", twice->name);
  }
  // An optional input does not replace a required one.
  return required == model.required_input_count() ? base::OkStatus() : InputCountError(request);
}

Status MatchOutputs(Request& request) {
  const Model& model = *request.model;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    core::RequestedOutput& output = request.outputs[i];
    const int index = model.FindOutput(output.name);
    if (index < 0) {
      return InvalidArgumentError(fmt::format("unexpected inference output '{}' for model '{}'",
                                              output.name, model.name()));
    }
    output.model_index = static_cast<uint32_t>(index);
  }
  std::ranges::sort(request.outputs, {}, &core::RequestedOutput::name);
  const auto twice = std::ranges::adjacent_find(request.outputs, {}, &core::RequestedOutput::name);
  if (twice == request.outputs.end()) return base::OkStatus();
  return DuplicateError("output", twice->name).WithPrefix(request.LogPrefix());
}

Status FindBatchSize(Request& request) {
  const Model& model = *request.model;
  request.batch_size = 0;
  if (model.max_batch_size() == 0) return base::OkStatus();
  int64_t batch_size = 0;
  bool found = false;  // whether an input has the batch as its first dimension
  for (const RequestInput& input : request.inputs) {
    if (model.inputs()[input.model_index].is_shape_tensor) continue;
    if (input.shape.empty()) {
      return InvalidArgumentError(
          fmt::format("input '{}' has no shape but model requires batch dimension for '{}'",
                      input.name, model.name()));
    }
    if (!found) {
      found = true;
      batch_size = input.shape[0];
    } else if (input.shape[0] != batch_size) {
      return InvalidArgumentError(fmt::format(
          "input '{}' batch size does not match other inputs for '{}'", input.name, model.name()));
    }
  }
  // A negative first dimension is as invalid as one that is too large.
  if (batch_size > model.max_batch_size() || batch_size < 0) {
    return InvalidArgumentError(
        fmt::format("inference request batch-size must be <= {} for '{}', got {}; the limit is "
                    "max_batch_size in the model's configuration",
                    model.max_batch_size(), model.name(), batch_size));
  }
  if (batch_size == 0 && found) {
    return InvalidArgumentError(
        fmt::format("inference request batch-size must be >= 1 for '{}'", model.name()));
  }
  request.batch_size = static_cast<uint32_t>(batch_size);
  return base::OkStatus();
}

Status ShapeError(const RequestInput& input, const ModelTensor& expected, const Model& model) {
  std::vector<int64_t> dims(expected.dims.dims().begin(), expected.dims.dims().end());
  std::string_view note;
  if (model.max_batch_size() > 0) {
    dims.insert(dims.begin(), tensor::kWildcard);
    note =
        "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to "
        "be prepended to each input shape. If you want to specify the full shape including the "
        "batch dim in your input dims config, try setting max_batch_size to zero. See the model "
        "configuration docs for more info on max_batch_size.";
  }
  return InvalidArgumentError(fmt::format(
      "unexpected shape for input '{}' for model '{}'. Expected {}, got {}. {}", input.name,
      model.name(), tensor::ToString(dims), tensor::ToString(input.shape), note));
}

// Compares the shape with the configured one. `batch_dims` is 1 if the first dimension is the
// batch, and otherwise 0.
Status CheckShape(const RequestInput& input, const ModelTensor& expected, const Model& model,
                  size_t batch_dims) {
  const std::span<const int64_t> got = input.shape.dims().subspan(batch_dims);
  const std::span<const int64_t> want = expected.dims.dims();
  if (got.size() != want.size()) return ShapeError(input, expected, model);
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == tensor::kWildcard) {
      return InvalidArgumentError(fmt::format(
          "All input dimensions should be specified for input '{}' for model '{}', got {}",
          input.name, model.name(), tensor::ToString(input.shape)));
    }
    if (want[i] != tensor::kWildcard && want[i] != got[i]) {
      return ShapeError(input, expected, model);
    }
  }
  return base::OkStatus();
}

// Replaces the dimensions after the batch by the model's. Its wildcards take the values of the
// configured wildcards, in order.
void ApplyReshape(RequestInput& input, const ModelTensor& plan, size_t batch_dims) {
  tensor::Shape reshaped;
  if (batch_dims > 0) reshaped.PushBack(input.shape[0]);
  size_t from = 0;
  for (const int64_t dim : plan.model_dims.dims()) {
    if (dim != tensor::kWildcard) {
      reshaped.PushBack(dim);
      continue;
    }
    while (from < plan.dims.rank() && plan.dims[from] != tensor::kWildcard) ++from;
    reshaped.PushBack(input.shape[batch_dims + from]);
    ++from;
  }
  input.shape = std::move(reshaped);
}

Status SizeOverflowError(const RequestInput& input, const Model& model) {
  return InvalidArgumentError(fmt::format(
      "input '{}' for model '{}': shape {} causes total element count to exceed maximum size of {}",
      input.name, model.name(), tensor::ToString(input.shape),
      std::numeric_limits<int64_t>::max()));
}

// Checks the length-prefixed elements of a BYTES tensor over all its chunks.
Status CheckBytes(const RequestInput& input, const Model& model) {
  const auto count = tensor::ElementCount(input.shape.dims());
  if (!count) return SizeOverflowError(input, model);
  const auto expected = static_cast<uint64_t>(*count);
  uint64_t seen = 0;
  size_t open = 0;  // the missing bytes of the current element
  size_t length_of_open = 0;
  for (size_t i = 0; i < input.chunk_count(); ++i) {
    const core::DataChunk& chunk = input.chunk(i);
    if (chunk.where.type == memory::MemoryType::kGpu) return base::OkStatus();
    const std::byte* data = chunk.data;
    size_t left = chunk.size;
    while (left > 0) {
      if (open == 0) {
        uint32_t length;
        if (left < sizeof length) {
          return InvalidArgumentError(fmt::format(
              "incomplete string length indicator for inference input '{}' for model '{}', "
              "expecting {} bytes but only {} bytes available. Please make sure the string length "
              "indicator is in one buffer.",
              input.name, model.name(), sizeof length, left));
        }
        std::memcpy(&length, data, sizeof length);
        if (++seen > expected) {
          return InvalidArgumentError(fmt::format(
              "unexpected number of string elements {} for inference input '{}' for model '{}', "
              "expecting {}",
              seen, input.name, model.name(), expected));
        }
        data += sizeof length;
        left -= sizeof length;
        open = length_of_open = length;
      }
      const size_t taken = std::min(open, left);
      data += taken;
      left -= taken;
      open -= taken;
    }
  }
  if (open > 0) {
    return InvalidArgumentError(
        fmt::format("incomplete string data for inference input '{}', expecting string of length "
                    "{} but only {} "
                    "bytes available",
                    input.name, length_of_open, length_of_open - open));
  }
  if (seen != expected) {
    return InvalidArgumentError(
        fmt::format("expected {} string elements for inference input '{}' for model '{}', got {}",
                    expected, input.name, model.name(), seen));
  }
  return base::OkStatus();
}

Status CheckSize(const RequestInput& input, const Model& model) {
  if (input.type == tensor::DataType::kBytes) return CheckBytes(input, model);
  const auto expected = tensor::ByteSize(input.type, input.shape.dims());
  if (!expected || *expected > static_cast<size_t>(std::numeric_limits<int64_t>::max())) {
    return SizeOverflowError(input, model);
  }
  if (*expected != input.byte_size) {
    return InvalidArgumentError(
        fmt::format("input byte size mismatch for input '{}' for model '{}'. Expected {}, got {}",
                    input.name, model.name(), *expected, input.byte_size));
  }
  return base::OkStatus();
}

// Checks batch, types, shapes and sizes of inputs that were matched with the model's.
Status CheckContents(Request& request) {
  const Model& model = *request.model;
  NEREID_RETURN_IF_ERROR(FindBatchSize(request));
  for (RequestInput& input : request.inputs) {
    const ModelTensor& expected = model.inputs()[input.model_index];
    if (input.type != expected.type) {
      return InvalidArgumentError(fmt::format(
          "inference input '{}' data-type is '{}', but model '{}' expects '{}'", input.name,
          tensor::ProtocolName(input.type), model.name(), tensor::ProtocolName(expected.type)));
    }
    const size_t batch_dims = model.max_batch_size() > 0 && !expected.is_shape_tensor ? 1 : 0;
    NEREID_RETURN_IF_ERROR(CheckShape(input, expected, model, batch_dims));
    if (expected.has_reshape) ApplyReshape(input, expected, batch_dims);
    NEREID_RETURN_IF_ERROR(CheckSize(input, model));
  }
  return base::OkStatus();
}

// Copies inputs on GPUs to host memory if the server or the model needs them there.
Status BringInputs(Request& request) {
  const Model& model = *request.model;
  if (!model.uses_gpu_memory()) return core::BringInputsToHost(request, model.gpus());
  for (RequestInput& input : request.inputs) {
    const bool is_read_here =
        input.type == tensor::DataType::kBytes || model.inputs()[input.model_index].is_shape_tensor;
    if (is_read_here) NEREID_RETURN_IF_ERROR(core::BringToHost(input, request, model.gpus()));
  }
  return base::OkStatus();
}

}  // namespace

Status NormalizeRequest(Request& request) {
  NEREID_RETURN_IF_ERROR(MatchOutputs(request));
  if (Status status = MatchInputs(request); !status.ok()) {
    const bool is_unknown_name = status.message().starts_with(kUnexpectedInput);
    return is_unknown_name ? status : status.WithPrefix(request.LogPrefix());
  }
  Status status = request.has_gpu_inputs ? BringInputs(request) : base::OkStatus();
  if (status.ok()) status = CheckContents(request);
  return status.ok() ? status : status.WithPrefix(request.LogPrefix());
}

}  // namespace nereid::engine
