// SPDX-License-Identifier: Apache-2.0
// Models, requests and instances for tests of sequences.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/fakes.h"

namespace nereid::schedule {

struct SequenceModelOptions {
  int32_t max_batch_size = 4;
  config::SequenceBatching batching;
  std::vector<int64_t> dims = {1};
};

inline config::SequenceBatching::ControlInput Control(const std::string& name,
                                                      config::SequenceBatching::ControlKind kind) {
  config::SequenceBatching::Control control{.kind = kind, .int32_false_true = {0, 1}};
  return {.name = name, .control = {control}};
}

// Returns START, END, READY as INT32 and CORRID as UINT64.
inline config::SequenceBatching AllControls() {
  using Kind = config::SequenceBatching::ControlKind;
  config::SequenceBatching batching;
  batching.max_sequence_idle_microseconds = UINT64_C(3'600'000'000);
  batching.control_input = {Control("START", Kind::kStart), Control("END", Kind::kEnd),
                            Control("READY", Kind::kReady)};
  config::SequenceBatching::Control id{.kind = Kind::kCorrelationId,
                                       .data_type = tensor::DataType::kUint64};
  batching.control_input.push_back({.name = "CORRID", .control = {id}});
  return batching;
}

inline std::unique_ptr<core::Model> MakeSequenceModel(SequenceModelOptions options) {
  auto config = std::make_shared<config::ModelConfig>();
  config->max_batch_size = options.max_batch_size;
  config->scheduling_choice = std::move(options.batching);
  core::ModelOptions model;
  model.name = "model";
  model.version = 1;
  model.config = std::move(config);
  model.max_batch_size = options.max_batch_size;
  core::ModelTensor tensor{.name = "INPUT0", .type = tensor::DataType::kFp32};
  tensor.dims.Assign(options.dims);
  tensor.model_dims.Assign(options.dims);
  model.inputs.push_back(tensor);
  tensor.name = "OUTPUT0";
  model.outputs.push_back(tensor);
  return std::make_unique<core::Model>(std::move(model));
}

inline core::RequestPtr MakeSequenceRequest(core::Model& model, core::ResponseSink& sink,
                                            core::CorrelationId id, uint32_t flags,
                                            int64_t size = 1) {
  core::RequestPtr request = core::MakeFakeRequest(model, sink, {1, size});
  request->correlation_id = id;
  request->flags = flags;
  core::RequestInput& input = request->inputs[0];
  auto* const data = request->arena().Allocate(static_cast<size_t>(size) * 4);
  std::memset(data, 1, static_cast<size_t>(size) * 4);
  input.Append({.data = data, .size = static_cast<size_t>(size) * 4});
  return request;
}

// Returns the value of a control; -1 if the request has none of that name.
template <typename T = int32_t>
T ControlValue(core::Request& request, std::string_view name) {
  const core::RequestInput* const input = request.FindInput(name);
  if (input == nullptr) return static_cast<T>(-1);
  T value;
  std::memcpy(&value, input->first.data, sizeof value);
  return value;
}

// Returns "7s", "7", "7e" or "7se": the id and flags in the controls; "-" if READY is false.
inline std::string Describe(core::Request& request) {
  if (ControlValue(request, "READY") == 0) return "-";
  std::string text = std::to_string(ControlValue<uint64_t>(request, "CORRID"));
  if (ControlValue(request, "START") == 1) text += 's';
  if (ControlValue(request, "END") == 1) text += 'e';
  return text;
}

inline std::string Describe(std::span<core::RequestPtr> batch) {
  std::string text;
  for (core::RequestPtr& request : batch) text += (text.empty() ? "" : " ") + Describe(*request);
  return text;
}

}  // namespace nereid::schedule
