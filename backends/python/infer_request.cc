// SPDX-License-Identifier: Apache-2.0
#include "python_backend/infer_request.h"

#include <utility>

#include "python_backend/json.h"

namespace nereid::python {

using backend::Error;
using backend::StrCat;

namespace {

Error SetParameters(TRITONSERVER_InferenceRequest* request, const std::string& json) {
  return ForEachParameter(
      json, "the parameters of a request",
      [&](const char* name, const char* value) {
        return TRITONSERVER_InferenceRequestSetStringParameter(request, name, value);
      },
      [&](const char* name, int64_t value) {
        return TRITONSERVER_InferenceRequestSetIntParameter(request, name, value);
      },
      [&](const char* name, bool value) {
        return TRITONSERVER_InferenceRequestSetBoolParameter(request, name, value);
      });
}

}  // namespace

std::optional<Wanted> Wanted::Read(const InferRecord& record, Reader& reader,
                                   const Region& region) {
  Wanted wanted{.record = record};
  wanted.model = reader.SizedText();
  wanted.id = reader.SizedText();
  wanted.correlation_text = reader.SizedText();
  wanted.parameters = reader.SizedText();
  if (record.inputs > kMaxTensors || record.outputs > kMaxTensors) return std::nullopt;
  for (uint32_t i = 0; i < record.inputs && reader.ok(); ++i) {
    std::optional<Tensor> tensor = ReadTensor(reader, region);
    if (!tensor) return std::nullopt;
    wanted.inputs.push_back(*std::move(tensor));
  }
  for (uint64_t i = 0; i < record.outputs && reader.ok(); ++i) {
    wanted.outputs.emplace_back(reader.SizedText());
  }
  if (!reader.ok()) return std::nullopt;
  return wanted;
}

Error Fill(TRITONSERVER_InferenceRequest* request, const Wanted& wanted) {
  NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetId(request, wanted.id.c_str()));
  if (wanted.record.has_correlation_text != 0) {
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetCorrelationIdString(
        request, wanted.correlation_text.c_str()));
  } else {
    NEREID_KIT_TRY(
        TRITONSERVER_InferenceRequestSetCorrelationId(request, wanted.record.correlation_id));
  }
  NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetFlags(request, wanted.record.flags));
  NEREID_KIT_TRY(
      TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, wanted.record.timeout_us));
  NEREID_KIT_TRY(SetParameters(request, wanted.parameters).Release());
  for (const Tensor& input : wanted.inputs) {
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestAddInput(
        request, input.name.c_str(), input.datatype, input.shape.data(), input.shape.size()));
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestAppendInputData(
        request, input.name.c_str(), input.data.data(), input.data.size(), TRITONSERVER_MEMORY_CPU,
        0));
  }
  for (const std::string& output : wanted.outputs) {
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestAddRequestedOutput(request, output.c_str()));
  }
  return {};
}

Error CheckModel(TRITONSERVER_Server* server, const Wanted& wanted) {
  const char* const model = wanted.model.c_str();
  bool is_ready = false;
  NEREID_KIT_TRY(
      TRITONSERVER_ServerModelIsReady(server, model, wanted.record.model_version, &is_ready));
  if (!is_ready) {
    return Error::Internal(
        StrCat("Failed for execute the inference request. Model '", model, "' is not ready."));
  }
  uint32_t properties = 0;
  NEREID_KIT_TRY(TRITONSERVER_ServerModelTransactionProperties(
      server, model, wanted.record.model_version, &properties, nullptr));
  if (!wanted.is_stream() && (properties & TRITONSERVER_TXN_DECOUPLED) != 0) {
    return Error::Internal(StrCat(
        "Model ", model,
        " is using the decoupled. The current BLS request call doesn't support models using "
        "the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' "
        "or 'async_exec' calls for decoupled models.'"));
  }
  return {};
}

}  // namespace nereid::python
