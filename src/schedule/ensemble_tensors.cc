// SPDX-License-Identifier: Apache-2.0
// Texts and shape rules: core/src/ensemble_scheduler/ensemble_scheduler.cc of Triton.
#include "schedule/ensemble_tensors.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "core/reshape.h"

namespace nereid::schedule {
namespace {

bool Fits(const tensor::Shape& config, const tensor::Shape& shape) {
  if (config.rank() != shape.rank()) return false;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (config[i] != shape[i] && config[i] != tensor::kWildcard && shape[i] != tensor::kWildcard) {
      return false;
    }
  }
  return true;
}

// Returns the shape of a tensor for a model with a batch dimension, where that of the producing
// request has none, or the other way round. `batch_size` is that of the producing request.
tensor::Shape AcrossBatching(const tensor::Shape& config, bool is_batching, uint32_t batch_size,
                             const tensor::Shape& shape) {
  const std::span<const int64_t> dims = shape.dims();
  if (is_batching) {
    // One element; a tensor that fits only with its first dimension is a batch already.
    if (!Fits(config, shape)) return shape;
    tensor::Shape batched{1};
    for (const int64_t dim : dims) batched.PushBack(dim);
    return batched;
  }
  const bool has_batch_of_one = batch_size == 1 && !dims.empty() && dims[0] == 1;
  if (Fits(config, shape) || !has_batch_of_one) return shape;
  return tensor::Shape(dims.subspan(1));
}

void AddSequenceParameters(core::Response& response, const EnsembleSequence& sequence) {
  core::Parameter id{.name = "sequence_id", .value = {}};
  if (const auto* number = std::get_if<uint64_t>(&sequence.id)) {
    id.value = static_cast<int64_t>(*number);
  } else {
    id.value = std::get<std::string_view>(sequence.id);
  }
  response.AddParameter(id);
  response.AddParameter(
      {.name = "sequence_start", .value = (sequence.flags & core::kSequenceStart) != 0});
  response.AddParameter(
      {.name = "sequence_end", .value = (sequence.flags & core::kSequenceEnd) != 0});
}

base::Status AddOutput(core::Response& response, const core::Request& client,
                       const core::ModelTensor& described, const EnsembleValue& value) {
  if (!value.has_data()) {
    NEREID_VLOG(1, "Composing models did not output tensor {}", described.name);
    return base::OkStatus();
  }
  const bool is_batching = client.batch_size != 0;
  core::ResponseOutput* const added =
      response.AddOutput(described.name, value.type(), value.shape().dims());
  if (added == nullptr) return base::UnavailableError("out of memory for outputs");
  if (is_batching != (value.batch_size != 0)) {
    added->shape =
        AcrossBatching(described.model_dims, is_batching, value.batch_size, value.shape());
  }
  if (described.has_reshape) {
    NEREID_RETURN_IF_ERROR(core::ReshapeForClient(described, is_batching, added->shape));
  }
  if (value.output != nullptr) return response.ShareBuffer(*added, *value.output);
  NEREID_RETURN_IF_ERROR(response.AllocateBuffer(*added, value.input->byte_size, {}, false));
  std::byte* to = added->data;
  for (size_t i = 0; i < value.input->chunk_count(); ++i) {
    const core::DataChunk& chunk = value.input->chunk(i);
    if (chunk.size > 0) std::memcpy(to, chunk.data, chunk.size);
    to += chunk.size;
  }
  return response.MoveStagedOutputs();
}

}  // namespace

void FillStepInputs(core::Request& request, const EnsembleStep& step, const EnsembleFrame& frame) {
  const core::Model& model = *request.model;
  const bool is_batching = model.max_batch_size() > 0;
  for (const EnsembleBinding& binding : step.inputs) {
    const EnsembleValue& value = frame.value(binding.tensor);
    if (!value.has_data()) continue;
    core::RequestInput& input = request.AddInput(binding.name, value.type());
    if (is_batching == (value.batch_size != 0)) {
      input.shape = value.shape();
    } else if (const int index = model.FindInput(binding.name); index >= 0) {
      input.shape = AcrossBatching(model.inputs()[static_cast<size_t>(index)].dims, is_batching,
                                   value.batch_size, value.shape());
    } else {
      input.shape = value.shape();  // the engine will refuse it
    }
    if (value.input != nullptr) {
      for (size_t i = 0; i < value.input->chunk_count(); ++i) input.Append(value.input->chunk(i));
    } else {
      const core::ResponseOutput& output = *value.output;
      input.Append({.data = output.data, .size = output.byte_size, .where = output.where});
    }
  }
}

EnsembleSequence SequenceOfStep(const core::Request& client, const EnsembleStep& step,
                                const EnsembleFrame& frame) {
  if (step.producers.empty()) return {.id = client.correlation_id, .flags = client.flags};
  const EnsembleSequence& first = frame.source(step.producers.front()).sequence;
  for (size_t i = 1; i < step.producers.size(); ++i) {
    if (frame.source(step.producers[i]).sequence == first) continue;
    NEREID_LOG(kError,
               "{}Different set of response parameters are set for '{}'. Those of model '{}' are "
               "used.",
               client.LogPrefix(), step.model_name,
               frame.plan().steps()[step.producers.front()].model_name);
  }
  return first;
}

base::Result<core::ResponsePtr> MakeEnsembleResponse(core::Request& client,
                                                     const core::Model& ensemble,
                                                     const EnsembleFrame& frame) {
  const EnsemblePlan& plan = frame.plan();
  core::ResponsePtr response = core::Response::Create(client);
  const EnsembleSequence* sequence = nullptr;
  for (const uint32_t output : ensemble.outputs_by_name()) {
    if (frame.needs().outputs[output] == 0) continue;
    const uint32_t tensor = plan.output_tensors()[output];
    const EnsembleValue& value = frame.value(tensor);
    NEREID_RETURN_IF_ERROR(AddOutput(*response, client, ensemble.outputs()[output], value));
    const uint32_t producer = plan.tensors()[tensor].producer;
    // Triton reports the sequence beside each output that has bytes; once is enough.
    if (producer == kNoStep || value.output == nullptr || value.output->byte_size == 0) continue;
    if (sequence == nullptr) sequence = &frame.source(producer).sequence;
  }
  if (sequence != nullptr) AddSequenceParameters(*response, *sequence);
  for (size_t output = 0; output < plan.output_tensors().size(); ++output) {
    const uint32_t producer = plan.tensors()[plan.output_tensors()[output]].producer;
    if (frame.needs().outputs[output] != 0 && producer != kNoStep) {
      frame.source(producer).DropReader();
    }
  }
  return response;
}

}  // namespace nereid::schedule
