// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/session_runner.h"

#include <algorithm>
#include <utility>

#include "onnxruntime_backend/data_types.h"

namespace nereid::onnxruntime {

using backend::BatchVerdict;
using backend::Error;
using backend::HostTensor;
using backend::Result;
using backend::StrCat;

namespace {

Result<Owned<OrtRunOptions>> MakeRunOptions() {
  OrtRunOptions* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateRunOptions(&raw));
  Owned<OrtRunOptions> options(raw);
  // Failures on some rows are expected and must not be logged.
  NEREID_ORT_TRY(Api().RunOptionsSetRunLogSeverityLevel(raw, ORT_LOGGING_LEVEL_FATAL));
  return options;
}

Error ReadStrings(const OrtValue* value, size_t elements, HostTensor& tensor) {
  for (size_t e = 0; e < elements; ++e) {
    size_t length = 0;
    NEREID_ORT_TRY(Api().GetStringTensorElementLength(value, e, &length));
    std::string text(length, '\0');
    NEREID_ORT_TRY(Api().GetStringTensorElement(value, length, e, text.data()));
    tensor.strings.push_back(std::move(text));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SessionRunner>> SessionRunner::Create(const Session& session,
                                                             const ProbeLimits& limits) {
  OrtMemoryInfo* raw_info = nullptr;
  NEREID_ORT_TRY(Api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw_info));
  Owned<OrtMemoryInfo> memory_info(raw_info);
  NEREID_KIT_ASSIGN(Owned<OrtRunOptions> options, MakeRunOptions());
  return std::unique_ptr<SessionRunner>(
      new SessionRunner(session, limits, std::move(memory_info), std::move(options)));
}

SessionRunner::SessionRunner(const Session& session, const ProbeLimits& limits,
                             Owned<OrtMemoryInfo> memory_info, Owned<OrtRunOptions> options)
    : session_(session),
      limits_(limits),
      memory_info_(std::move(memory_info)),
      options_(std::move(options)),
      meter_(session.get(), memory_info_.get()),
      arena_before_(meter_.Bytes()),
      watchdog_(options_.get(), limits) {}

Result<std::vector<HostTensor>> SessionRunner::Run(std::span<const HostTensor> inputs) {
  const auto rows = static_cast<uint64_t>(inputs[0].shape[0]);
  if (arena_per_row_ * rows > limits_.arena_bytes) {
    too_large_ =
        StrCat(rows, " rows take more than ", limits_.arena_bytes >> 20, " MiB of the arena");
  }
  if (Exhausted()) {
    return Error::Unavailable("the limits of the probe are reached");
  }
  NEREID_KIT_TRY(FillValues(inputs));
  std::vector<const char*> names;
  for (const TensorInfo& output : session_.signature().outputs) {
    names.push_back(output.name.c_str());
  }
  std::vector<OrtValue*> raw_outputs(names.size(), nullptr);
  Error error = RunOnce(inputs, names, raw_outputs);
  std::vector<Owned<OrtValue>> outputs;
  for (OrtValue* value : raw_outputs) {
    outputs.emplace_back(value);
  }
  values_.clear();
  NEREID_KIT_TRY(error.Release());
  NEREID_KIT_ASSIGN(std::vector<HostTensor> read, ReadAll(outputs));
  Learn(inputs, read);
  return read;
}

std::optional<BatchVerdict> SessionRunner::Exhausted() const {
  if (watchdog_.IsOver()) {
    return BatchVerdict::No(
        "too_slow", StrCat("trying it takes more than ", limits_.cpu_time.count(),
                           " ms of one processor, or ", limits_.wall_time.count(), " ms in all"));
  }
  if (!too_large_.empty()) {
    return BatchVerdict::No("too_large", too_large_);
  }
  return std::nullopt;
}

Error SessionRunner::GiveBack() {
  if (first_inputs_.empty() || last_output_.bytes.empty() || Exhausted()) {
    return {};
  }
  NEREID_ORT_TRY(
      Api().AddRunConfigEntry(options_.get(), "memory.enable_memory_arena_shrinkage", "cpu:0"));
  NEREID_KIT_TRY(FillValues(first_inputs_));
  OrtValue* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(
      memory_info_.get(), last_output_.bytes.data(), last_output_.bytes.size(),
      last_output_.shape.data(), last_output_.shape.size(), FromServerType(last_output_.type),
      &raw));
  const Owned<OrtValue> output(raw);
  std::vector<OrtValue*> outputs = {raw};
  Error error = RunOnce(first_inputs_, {last_output_.name.c_str()}, outputs);
  values_.clear();
  return error;
}

Error SessionRunner::FillValues(std::span<const HostTensor> inputs) {
  values_.clear();
  for (const HostTensor& input : inputs) {
    OrtValue* raw = nullptr;
    if (!input.is_string()) {
      // ONNX Runtime takes a mutable pointer but does not write to inputs.
      NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(
          memory_info_.get(), const_cast<char*>(input.bytes.data()), input.bytes.size(),
          input.shape.data(), input.shape.size(), FromServerType(input.type), &raw));
      values_.emplace_back(raw);
      continue;
    }
    OrtAllocator* allocator = nullptr;
    NEREID_ORT_TRY(Api().GetAllocatorWithDefaultOptions(&allocator));
    NEREID_ORT_TRY(Api().CreateTensorAsOrtValue(allocator, input.shape.data(), input.shape.size(),
                                                ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &raw));
    values_.emplace_back(raw);
    std::vector<const char*> texts;
    for (const std::string& text : input.strings) {
      texts.push_back(text.c_str());
    }
    NEREID_ORT_TRY(Api().FillStringTensor(raw, texts.data(), texts.size()));
  }
  return {};
}

Error SessionRunner::RunOnce(std::span<const HostTensor> inputs,
                             const std::vector<const char*>& output_names,
                             std::vector<OrtValue*>& outputs) {
  std::vector<const char*> input_names;
  std::vector<const OrtValue*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_names.push_back(inputs[i].name.c_str());
    values.push_back(values_[i].get());
  }
  return FromOrt(Api().Run(session_.get(), options_.get(), input_names.data(), values.data(),
                           values.size(), output_names.data(), output_names.size(),
                           outputs.data()));
}

void SessionRunner::Learn(std::span<const HostTensor> inputs,
                          const std::vector<HostTensor>& outputs) {
  if (!first_inputs_.empty()) {
    return;
  }
  const auto rows = static_cast<uint64_t>(inputs[0].shape[0]);
  const uint64_t bytes = meter_.Bytes();
  arena_per_row_ = bytes > arena_before_ ? (bytes - arena_before_) / rows : 0;
  first_inputs_.assign(inputs.begin(), inputs.end());
  const auto fixed = std::find_if(outputs.begin(), outputs.end(),
                                  [](const HostTensor& output) { return !output.is_string(); });
  if (fixed != outputs.end()) {
    last_output_ = *fixed;
  }
}

Result<std::vector<HostTensor>> SessionRunner::ReadAll(const std::vector<Owned<OrtValue>>& values) {
  std::vector<HostTensor> tensors;
  for (size_t o = 0; o < values.size(); ++o) {
    NEREID_KIT_ASSIGN(HostTensor tensor, ReadOne(session_.signature().outputs[o], values[o].get()));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<HostTensor> SessionRunner::ReadOne(const TensorInfo& info, const OrtValue* value) {
  HostTensor tensor{
      .name = info.name, .type = ToServerType(info.type), .shape = {}, .bytes = {}, .strings = {}};
  OrtTensorTypeAndShapeInfo* raw_shape = nullptr;
  NEREID_ORT_TRY(Api().GetTensorTypeAndShape(value, &raw_shape));
  const Owned<OrtTensorTypeAndShapeInfo> shape(raw_shape);
  size_t rank = 0;
  NEREID_ORT_TRY(Api().GetDimensionsCount(raw_shape, &rank));
  tensor.shape.resize(rank);
  NEREID_ORT_TRY(Api().GetDimensions(raw_shape, tensor.shape.data(), rank));
  NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(tensor.shape));
  const uint64_t bytes = static_cast<uint64_t>(elements) *
                         std::max<uint64_t>(backend::ElementByteSize(tensor.type), 1);
  if (bytes > limits_.output_bytes) {
    too_large_ =
        StrCat("output '", info.name, "' takes more than ", limits_.output_bytes >> 20, " MiB");
    return Error::Unavailable(too_large_);
  }
  if (tensor.is_string()) {
    NEREID_KIT_TRY(ReadStrings(value, static_cast<size_t>(elements), tensor));
    return tensor;
  }
  const void* data = nullptr;
  NEREID_ORT_TRY(Api().GetTensorData(value, &data));
  const auto* const begin = static_cast<const char*>(data);
  tensor.bytes.assign(begin, begin + bytes);
  return tensor;
}

}  // namespace nereid::onnxruntime
