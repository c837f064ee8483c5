// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/feeding.h"

#include <cstring>

#include "backend_kit/bytes.h"

namespace nereid::onnxruntime {

using backend::Batch;
using backend::Error;
using backend::InputView;
using backend::Result;

Error Feeding::Fill(Batch& batch, Plan& plan, std::vector<const OrtValue*>* values) {
  values->clear();
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    PlannedInput& input = plan.inputs[i];
    if (input.batch_input >= 0) {
      NEREID_KIT_ASSIGN(const OrtValue* const value, FillBatchInput(input));
      values->push_back(value);
    } else if (ports_.inputs[input.port].is_string()) {
      NEREID_KIT_ASSIGN(const OrtValue* const value, FillStrings(i, input));
      values->push_back(value);
    } else {
      NEREID_KIT_ASSIGN(const OrtValue* const value, FillFixed(batch, i, input));
      values->push_back(value);
    }
  }
  return {};
}

// Strings are copied into the tensor by length, so that they may contain any byte.
Result<const OrtValue*> Feeding::FillStrings(size_t i, const PlannedInput& input) {
  OrtAllocator* allocator = nullptr;
  NEREID_ORT_TRY(Api().GetAllocatorWithDefaultOptions(&allocator));
  OrtValue* value = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorAsOrtValue(allocator, input.shape.data(), input.shape.size(),
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  owned_values_.emplace_back(value);
  size_t element = 0;
  Error failure;
  for (const uint32_t r : gathering_.members()) {
    const InputView& from = gathering_.view(i, r);
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(from.shape));
    NEREID_KIT_TRY(backend::ForEachString(
        gathering_.string_data(i, r), elements, from.name, [&](std::string_view text) {
          char* to = nullptr;
          if (Error error = FromOrt(
                  Api().GetResizedStringTensorElementBuffer(value, element++, text.size(), &to));
              !error.ok()) {
            failure = std::move(error);
          } else if (!text.empty()) {
            std::memcpy(to, text.data(), text.size());
          }
        }));
  }
  if (!failure.ok()) {
    return failure;
  }
  return static_cast<const OrtValue*>(value);
}

Result<const OrtValue*> Feeding::FillFixed(Batch& batch, size_t i, PlannedInput& input) {
  const Port& port = ports_.inputs[input.port];
  if (session_.placement().gpu && gathering_.members().size() == 1 && !input.is_passed_on) {
    NEREID_KIT_ASSIGN(const char* const on_gpu,
                      backend::GpuInput(gathering_.view(i, gathering_.members()[0]),
                                        session_.placement().device));
    if (on_gpu != nullptr) {
      return FillFromGpu(input, on_gpu);
    }
  }
  if (KeptTensor::Suits(input.byte_size, gathering_.members().size())) {
    NEREID_KIT_TRY(input.kept.Prepare(memory_info_, port, input.shape, input.byte_size));
    Copy(batch, i, input.kept.data);
    return static_cast<const OrtValue*>(input.kept.value.get());
  }
  gathered_.resize(ports_.inputs.size());
  backend::ScratchBuffer& scratch = gathered_[input.port];
  const char* data = nullptr;
  if (gathering_.members().size() == 1) {
    NEREID_KIT_ASSIGN(const std::span<const char> bytes,
                      backend::ContiguousInput(gathering_.view(i, gathering_.members()[0]),
                                               port.element_size, scratch));
    data = bytes.data();
  } else {
    char* const to = scratch.Ensure(input.byte_size);
    Copy(batch, i, to);
    data = to;
  }
  OrtValue* value = nullptr;
  // ONNX Runtime takes a mutable pointer but does not write to inputs.
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(memory_info_, const_cast<char*>(data),
                                                      input.byte_size, input.shape.data(),
                                                      input.shape.size(), port.info.type, &value));
  owned_values_.emplace_back(value);
  return static_cast<const OrtValue*>(value);
}

Result<const OrtValue*> Feeding::FillFromGpu(const PlannedInput& input, const char* data) {
  OrtValue* value = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(
      session_.gpu_memory(), const_cast<char*>(data), input.byte_size, input.shape.data(),
      input.shape.size(), ports_.inputs[input.port].info.type, &value));
  owned_values_.emplace_back(value);
  return static_cast<const OrtValue*>(value);
}

Result<const OrtValue*> Feeding::FillBatchInput(const PlannedInput& input) {
  const std::span<const char> data =
      gathering_.batch_inputs()[static_cast<size_t>(input.batch_input)].data();
  OrtValue* value = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(
      memory_info_, const_cast<char*>(data.data()), data.size(), input.shape.data(),
      input.shape.size(), ports_.inputs[input.port].info.type, &value));
  owned_values_.emplace_back(value);
  return static_cast<const OrtValue*>(value);
}

void Feeding::Copy(Batch& batch, size_t i, char* to) {
  for (const uint32_t r : gathering_.members()) {
    const InputView& from = gathering_.view(i, r);
    if (Error error = backend::CopyInput(from, {to, from.byte_size}); !error.ok()) {
      std::memset(to, 0, from.byte_size);
      batch.Fail(r, std::move(error));
    }
    to += from.byte_size;
  }
}

}  // namespace nereid::onnxruntime
