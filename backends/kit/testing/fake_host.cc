// SPDX-License-Identifier: Apache-2.0
#include "backend_kit/testing/fake_host.h"

#include <chrono>
#include <utility>

#include "backend_kit/mutex.h"
#include "nereid/backend_responses.h"

namespace {

// What a test gave as the memory of an input.
std::vector<std::string_view> MemoryOf(const TRITONBACKEND_Input& input) {
  if (!input.views.empty()) return input.views;
  return {input.buffers.begin(), input.buffers.end()};
}

// The lines that were logged.
struct Log {
  nereid::backend::Mutex mutex;
  std::vector<std::string> lines NEREID_KIT_GUARDED_BY(mutex);
};
Log& TheLog() {
  static Log log;
  return log;
}

}  // namespace

std::vector<std::string> nereid::backend::TakeLog() {
  const MutexLock lock(TheLog().mutex);
  return std::exchange(TheLog().lines, {});
}

extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* text) {
  return new TRITONSERVER_Error{code, text};
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) { return error->code; }
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->text.c_str(); }
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel, const char* file, const int line,
                                            const char* text) {
  const nereid::backend::MutexLock lock(TheLog().mutex);
  TheLog().lines.push_back(std::string(file) + ":" + std::to_string(line) + " " + text);
  return nullptr;
}
bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel) { return false; }

TRITONSERVER_Error* TRITONBACKEND_RequestId(TRITONBACKEND_Request* request, const char** id) {
  *id = request->id.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count) {
  *count = static_cast<uint32_t>(request->inputs.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request,
                                                      const uint32_t index,
                                                      TRITONBACKEND_Input** input) {
  if (index >= request->inputs.size()) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "no such input");
  }
  *input = &request->inputs[index];
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input) {
  for (TRITONBACKEND_Input& candidate : request->inputs) {
    if (candidate.name == name) {
      *input = &candidate;
      return nullptr;
    }
  }
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, "no such input");
}
TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* datatype,
                                                  const int64_t** shape, uint32_t* dims_count,
                                                  uint64_t* byte_size, uint32_t* buffer_count) {
  *name = input->name.c_str();
  *datatype = input->datatype;
  *shape = input->shape.data();
  *dims_count = static_cast<uint32_t>(input->shape.size());
  *byte_size = 0;
  for (const std::string_view memory : MemoryOf(*input)) {
    *byte_size += memory.size();
  }
  *buffer_count = static_cast<uint32_t>(MemoryOf(*input).size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index,
                                              const void** buffer, uint64_t* byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  *buffer = MemoryOf(*input)[index].data();
  *byte_size = MemoryOf(*input)[index].size();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
  *count = static_cast<uint32_t>(request->wanted.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request,
                                                    const uint32_t index, const char** name) {
  *name = request->wanted[index].c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request* request,
                                                       uint64_t* id) {
  if (!request->correlation_text.empty()) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "the correlation id is a text");
  }
  *id = request->correlation_id;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request* request,
                                                             const char** id) {
  *id = request->correlation_text.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestFlags(TRITONBACKEND_Request* request, uint32_t* flags) {
  *flags = request->flags;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    TRITONBACKEND_Request* request, uint64_t* timeout_us) {
  *timeout_us = request->timeout_us;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestTrace(TRITONBACKEND_Request*,
                                               TRITONSERVER_InferenceTrace** trace) {
  *trace = nullptr;
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "there are no traces");
}
TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* is_cancelled) {
  *is_cancelled = request->is_cancelled;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request* request,
                                                        uint32_t* count) {
  *count = static_cast<uint32_t>(request->parameters.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestParameter(TRITONBACKEND_Request* request,
                                                   const uint32_t index, const char** key,
                                                   TRITONSERVER_ParameterType* type,
                                                   const void** value) {
  const FakeParameter& parameter = request->parameters[index];
  *key = parameter.name.c_str();
  *type = parameter.type;
  switch (parameter.type) {
    case TRITONSERVER_PARAMETER_INT:
      *value = &parameter.number;
      break;
    case TRITONSERVER_PARAMETER_BOOL:
      *value = &parameter.truth;
      break;
    case TRITONSERVER_PARAMETER_DOUBLE:
      *value = &parameter.real;
      break;
    default:
      *value = parameter.text.c_str();
  }
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory** factory,
                                                     TRITONBACKEND_Request* request) {
  ++request->answer.open_factories;
  *factory = new TRITONBACKEND_ResponseFactory{request};
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory* factory) {
  --factory->request->answer.open_factories;
  delete factory;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory* factory,
                                                             bool* is_cancelled) {
  *is_cancelled = factory->request->is_cancelled;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory* factory,
                                                           const uint32_t flags) {
  factory->request->answer.sent.push_back(
      {{}, {}, "", (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0});
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response** response,
                                                         TRITONBACKEND_ResponseFactory* factory) {
  *response = new TRITONBACKEND_Response{factory->request, {}, {}};
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response* response,
                                                             const char* name, const char* value) {
  response->parameters[name] = value;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response* response,
                                                          const char* name, const int64_t value) {
  response->parameters[name] = std::to_string(value);
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response* response,
                                                           const char* name, const bool value) {
  response->parameters[name] = value ? "true" : "false";
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t) {
  ++request->answer.times_released;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
  *response = new TRITONBACKEND_Response{request, {}, {}};
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
  delete response;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType datatype,
                                                 const int64_t* shape, const uint32_t dims) {
  TRITONBACKEND_Output& made = response->outputs[name];
  made.datatype = datatype;
  made.shape.assign(shape, shape + dims);
  *output = &made;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               const uint64_t byte_size,
                                               TRITONSERVER_MemoryType* memory_type,
                                               int64_t* memory_type_id) {
  output->bytes.resize(byte_size);
  *buffer = output->bytes.data();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response,
                                               const uint32_t flags, TRITONSERVER_Error* error) {
  if (response->request->reading.valid()) response->request->reading.wait();
  Answer& answer = response->request->answer;
  ++answer.times_sent;
  answer.error = error == nullptr ? "" : error->text;
  answer.sent.push_back({response->outputs, response->parameters, answer.error,
                         (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0});
  answer.outputs = std::move(response->outputs);
  delete response;
  return nullptr;
}
TRITONSERVER_Error* NEREIDBACKEND_ResponseTrySend(TRITONBACKEND_Response* response,
                                                  const uint32_t flags, TRITONSERVER_Error* error,
                                                  bool* sent) {
  const auto& reading = response->request->reading;
  *sent =
      !reading.valid() || reading.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return *sent ? TRITONBACKEND_ResponseSend(response, flags, error) : nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_StateNew(TRITONBACKEND_State** state,
                                           TRITONBACKEND_Request* request, const char* name,
                                           const TRITONSERVER_DataType datatype,
                                           const int64_t* shape, const uint32_t dims) {
  TRITONBACKEND_State& made = request->answer.states[name];
  made.datatype = datatype;
  made.shape.assign(shape, shape + dims);
  *state = &made;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_StateBuffer(TRITONBACKEND_State* state, void** buffer,
                                              const uint64_t byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  state->bytes.resize(byte_size);
  *buffer = state->bytes.data();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state) {
  ++state->times_updated;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request* request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns) {
  const bool ordered = exec_start_ns <= compute_start_ns && compute_start_ns <= compute_end_ns &&
                       compute_end_ns <= exec_end_ns;
  Answer& answer = request->answer;
  ++(success && ordered ? answer.successes_reported : answer.failures_reported);
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, const uint64_t batch_size, const uint64_t,
    const uint64_t, const uint64_t, const uint64_t) {
  instance->executed_batches.push_back(batch_size);
  return nullptr;
}

}  // extern "C"
