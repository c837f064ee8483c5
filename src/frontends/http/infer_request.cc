// SPDX-License-Identifier: Apache-2.0
#include "http/infer_request.h"

#include <string>

#include "core/model.h"
#include "http/quick_reader.h"

namespace nereid::http {

InferRequestReader::InferRequestReader(size_t max_input_bytes)
    : max_input_bytes_(max_input_bytes), quick_(std::make_unique<QuickReader>(max_input_bytes)) {}

InferRequestReader::~InferRequestReader() = default;

base::Status InferRequestReader::Read(const InferBody& body, core::Request& request,
                                      ResponseOptions& response_options) {
  if (body.header_length == 0) {
    return infer_internal::ReadRaw(body.bytes, max_input_bytes_, request, response_options);
  }
  const std::string_view binary = body.bytes.substr(body.header_length);
  const std::string_view json =
      body.json_copy.empty() ? body.bytes.substr(0, body.header_length) : body.json_copy;
  if (json.size() > max_input_bytes_) {
    return base::InvalidArgumentError("request JSON size of " + std::to_string(json.size()) +
                                      " bytes exceeds the maximum allowed input size of " +
                                      std::to_string(max_input_bytes_) +
                                      " bytes. Use --http-max-input-size to increase the limit.");
  }
  if (quick_->Read(json, binary, request, response_options)) return base::OkStatus();
  infer_internal::ResetRequest(request, response_options);
  return infer_internal::ReadExactly(json, binary, max_input_bytes_, request, response_options);
}

namespace infer_internal {
namespace {

// Returns the shape of the only input, as far as `byte_count` determines it.
base::Result<tensor::Shape> DeduceRawShape(const core::Model& model, size_t byte_count,
                                           const std::string& prefix) {
  const core::ModelTensor& input = model.inputs().front();
  tensor::Shape shape;
  if (model.max_batch_size() != 0) shape.PushBack(1);
  int64_t wildcard = -1;
  uint64_t fixed_count = 1;
  for (const int64_t dim : input.dims.dims()) {
    if (dim == tensor::kWildcard) {
      if (wildcard != -1) {
        return base::InvalidArgumentError(
            prefix + "The shape of the raw input '" + input.name +
            "' can not be deduced because there are more than one variable-sized dimension");
      }
      wildcard = static_cast<int64_t>(shape.rank());
    } else {
      fixed_count *= static_cast<uint64_t>(dim);
    }
    shape.PushBack(dim);
  }
  if (input.type == tensor::DataType::kBytes) {
    if (wildcard != -1 || fixed_count != 1) {
      return base::InvalidArgumentError(prefix + "For BYTE datatype raw input '" + input.name +
                                        "', the model must have input shape [1]");
    }
  } else if (wildcard != -1) {
    const uint64_t row_bytes = fixed_count * tensor::ElementSize(input.type);
    shape[static_cast<size_t>(wildcard)] =
        row_bytes == 0 ? 0 : static_cast<int64_t>(byte_count / row_bytes);
  }
  return shape;
}

}  // namespace

base::Status ReadRaw(std::string_view bytes, size_t max_input_bytes, core::Request& request,
                     ResponseOptions& response_options) {
  if (bytes.size() > max_input_bytes) {
    return base::InvalidArgumentError("Raw input has a byte_size (" + std::to_string(bytes.size()) +
                                      " bytes) that exceeds the maximum allowed value of " +
                                      std::to_string(max_input_bytes) +
                                      " bytes. Use --http-max-input-size to increase the limit.");
  }
  const core::Model& model = *request.model;
  const std::string prefix = request.LogPrefix();
  if (model.inputs().size() != 1) {
    return base::InvalidArgumentError(
        prefix + "Raw request must only have 1 input (found 1) to be deduced but got " +
        std::to_string(model.inputs().size()) + " inputs in '" + model.name() +
        "' model configuration");
  }
  const core::ModelTensor& model_input = model.inputs().front();
  NEREID_ASSIGN_OR_RETURN(tensor::Shape shape, DeduceRawShape(model, bytes.size(), prefix));
  core::RequestInput& input = request.AddInput(model_input.name, model_input.type);
  input.shape = std::move(shape);
  if (model_input.type == tensor::DataType::kBytes) {
    // The one element is preceded by its length, as in every BYTES tensor.
    std::byte* const length = request.arena().Allocate(sizeof(uint32_t), alignof(uint32_t));
    if (length == nullptr) return base::UnavailableError("out of memory");
    *reinterpret_cast<uint32_t*>(length) = static_cast<uint32_t>(bytes.size());
    input.Append({length, sizeof(uint32_t), {}});
  }
  if (!bytes.empty()) {
    input.Append({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), {}});
  }
  response_options.is_binary_by_default = true;
  return base::OkStatus();
}

base::Status AddOutput(common::InferRequestBuilder& builder, std::string_view name,
                       const common::OutputParameters& parameters,
                       ResponseOptions& response_options) {
  NEREID_ASSIGN_OR_RETURN(core::RequestedOutput* const output, builder.AddOutput(name));
  NEREID_ASSIGN_OR_RETURN(const OutputOptions options,
                          builder.ReadOutputOptions(*output, parameters));
  output->tag = static_cast<uint32_t>(response_options.outputs.size());
  response_options.outputs.push_back(options);
  return base::OkStatus();
}

void ResetRequest(core::Request& request, ResponseOptions& response_options) {
  request.id = {};
  request.inputs.clear();
  request.outputs.clear();
  request.parameters.clear();
  request.flags = 0;
  request.correlation_id = uint64_t{0};
  request.priority = 0;
  request.timeout_us = 0;
  response_options.Clear();
}

}  // namespace infer_internal
}  // namespace nereid::http
