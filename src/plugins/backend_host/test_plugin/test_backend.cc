// SPDX-License-Identifier: Apache-2.0
// A backend for the tests of backend_host. The id of a request selects what the backend does with
// it:
//
//   echo              copies INPUT0 to OUTPUT0 and responds (also for an unknown id)
//   refuse            returns an error from execute for the whole batch
//   error             responds with an error
//   twice             responds, then tries to respond again
//   many              three responses and then the end, from a factory, after releasing the request
//   silent            releases the request without a response
//   reschedule        tries to reschedule the request, then responds
//   give_back         reschedules the request, and releases it where that fails
//   unknown_output    adds an output that the model does not have; responds with that error
//   no_bytes          an output of no bytes
//   partial           writes only the first byte of an output of 64
//   two_buffers       requests the buffer of an output twice; responds with that error
//   properties        asks for the placement of OUTPUT0, and responds with that
//   bad_index         uses an index that is out of bounds; responds with the error
//   late              responds and releases the request, and then reads it
//   late_response     releases the request, then makes and sends the response
//   late_factory      like late_response, with a factory that is made after the release
//   late_refusal      releases the request and returns an error from execute
//   count             adds one to the state STATE, read as input STATE; responds with the result
//   count_in_vain     like count, without updating the state
//   describe          responds with a parameter that lists all properties of the request
//   throw             throws out of execute
//
// TestEvents() lists the backend's events. Models with the parameter "fail" fail at the step that
// its value names; "complete" makes the backend set a configuration, "meet_two" makes an instance
// wait for another one that is initialised at the same time.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nereid/backend_completion.h"
#include "nereid/backend_traits.h"
#include "triton/core/tritonbackend.h"

namespace {

std::mutex mutex;
std::string events;

void Note(const std::string& event) {
  const std::lock_guard<std::mutex> lock(mutex);
  events += event + "\n";
}

TRITONSERVER_Error* Fail(const std::string& text) {
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, text.c_str());
}

#define TRY(call)                                                 \
  do {                                                            \
    if (TRITONSERVER_Error* try_error = (call)) return try_error; \
  } while (false)

// The thread that initialised the instance.
struct InstanceState {
  std::thread::id thread;
};

std::string Config(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  if (TRITONSERVER_Error* error = TRITONBACKEND_ModelConfig(model, 1, &message)) {
    std::string text = TRITONSERVER_ErrorMessage(error);
    TRITONSERVER_ErrorDelete(error);
    return text;
  }
  const char* base = nullptr;
  size_t size = 0;
  TRITONSERVER_MessageSerializeToJson(message, &base, &size);
  std::string text(base, size);
  TRITONSERVER_MessageDelete(message);
  return text;
}

bool Says(TRITONBACKEND_Model* model, const std::string& text) {
  return Config(model).find("\"" + text + "\"") != std::string::npos;
}

TRITONSERVER_Error* SetConfig(TRITONBACKEND_Model* model) {
  const std::string json = R"({"name":"model","max_batch_size":4,
    "input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[2]}],
    "output":[{"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[2]}],
    "dynamic_batching":{}})";
  TRITONSERVER_Message* message = nullptr;
  TRY(TRITONSERVER_MessageNewFromSerializedJson(&message, json.data(), json.size()));
  TRITONSERVER_Error* error = TRITONBACKEND_ModelSetConfig(model, 1, message);
  TRITONSERVER_MessageDelete(message);
  return error;
}

// Waits until two threads have called this.
TRITONSERVER_Error* MeetAnother() {
  static std::condition_variable changed;
  static int here = 0;
  std::unique_lock<std::mutex> lock(mutex);
  ++here;
  changed.notify_all();
  const bool met = changed.wait_for(lock, std::chrono::seconds(10), [] { return here >= 2; });
  return met ? nullptr : Fail("nobody else is initialized");
}

// Adds OUTPUT0 with the bytes of INPUT0.
TRITONSERVER_Error* Echo(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response) {
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
  TRITONSERVER_DataType type;
  const int64_t* shape = nullptr;
  uint32_t rank = 0;
  uint64_t size = 0;
  uint32_t buffers = 0;
  TRY(TRITONBACKEND_InputProperties(input, nullptr, &type, &shape, &rank, &size, &buffers));
  TRITONBACKEND_Output* output = nullptr;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", type, shape, rank));
  // This preference cannot be met; the result says CPU.
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
  int64_t id = 3;
  void* to = nullptr;
  TRY(TRITONBACKEND_OutputBuffer(output, &to, size, &memory_type, &id));
  if (memory_type != TRITONSERVER_MEMORY_CPU || id != 0) return Fail("not in CPU memory");
  char* next = static_cast<char*>(to);
  for (uint32_t b = 0; b < buffers; ++b) {
    const void* from = nullptr;
    uint64_t part = 0;
    TRY(TRITONBACKEND_InputBuffer(input, b, &from, &part, &memory_type, &id));
    std::memcpy(next, from, part);
    next += part;
  }
  return nullptr;
}

TRITONSERVER_Error* AddBuffer(TRITONBACKEND_Response* response, const char* name, uint64_t size,
                              TRITONBACKEND_Output** output, void** buffer) {
  const int64_t shape[] = {1, static_cast<int64_t>(size / 4)};
  TRY(TRITONBACKEND_ResponseOutput(response, output, name, TRITONSERVER_TYPE_FP32, shape, 2));
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  return TRITONBACKEND_OutputBuffer(*output, buffer, size, &memory_type, &id);
}

TRITONSERVER_Error* AddBuffer(TRITONBACKEND_Response* response, const char* name, uint64_t size) {
  TRITONBACKEND_Output* output = nullptr;
  void* buffer = nullptr;
  return AddBuffer(response, name, size, &output, &buffer);
}

TRITONSERVER_Error* TwoBuffers(TRITONBACKEND_Response* response) {
  TRITONBACKEND_Output* output = nullptr;
  void* buffer = nullptr;
  TRY(AddBuffer(response, "OUTPUT0", 8, &output, &buffer));
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  return TRITONBACKEND_OutputBuffer(output, &buffer, 8, &memory_type, &id);
}

TRITONSERVER_Error* Partial(TRITONBACKEND_Response* response) {
  TRITONBACKEND_Output* output = nullptr;
  void* buffer = nullptr;
  TRY(AddBuffer(response, "OUTPUT0", 64, &output, &buffer));
  *static_cast<char*>(buffer) = 'x';
  return nullptr;
}

TRITONSERVER_Error* BadIndex(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
  const void* buffer = nullptr;
  uint64_t size = 0;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_InputBuffer(input, 99, &buffer, &size, &memory_type, &id));
  if (buffer != nullptr || size != 0) return Fail("buffer 99 was given");
  return TRITONBACKEND_RequestInputByIndex(request, 99, &input);
}

TRITONSERVER_Error* Describe(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response) {
  std::string text;
  const char* name = nullptr;
  TRY(TRITONBACKEND_RequestId(request, &name));
  text += std::string("id=") + name;
  uint32_t count = 0;
  TRY(TRITONBACKEND_RequestInputCount(request, &count));
  TRY(TRITONBACKEND_RequestInputName(request, count - 1, &name));
  text += std::string(" input=") + name;
  TRY(TRITONBACKEND_RequestOutputCount(request, &count));
  TRY(TRITONBACKEND_RequestOutputName(request, count - 1, &name));
  text += " outputs=" + std::to_string(count) + " output=" + name;
  TRY(TRITONBACKEND_RequestCorrelationIdString(request, &name));
  text += std::string(" correlation=") + name;
  TRY(TRITONBACKEND_RequestParameterCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    TRITONSERVER_ParameterType type;
    const void* value = nullptr;
    TRY(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value));
    text += std::string(" ") + name + "=";
    switch (type) {
      case TRITONSERVER_PARAMETER_STRING:
        text += static_cast<const char*>(value);
        break;
      case TRITONSERVER_PARAMETER_INT:
        text += std::to_string(*static_cast<const int64_t*>(value));
        break;
      case TRITONSERVER_PARAMETER_BOOL:
        text += *static_cast<const bool*>(value) ? "true" : "false";
        break;
      default:
        text += std::to_string(*static_cast<const double*>(value));
    }
  }
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
  const void* buffer = nullptr;
  TRITONSERVER_BufferAttributes* attributes = nullptr;
  TRY(TRITONBACKEND_InputBufferAttributes(input, 0, &buffer, &attributes));
  size_t size = 0;
  TRY(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
  text += " bytes=" + std::to_string(size);
  return TRITONBACKEND_ResponseSetStringParameter(response, "says", text.c_str());
}

TRITONSERVER_Error* OutputProperties(TRITONBACKEND_Request* request,
                                     TRITONBACKEND_Response* response) {
  size_t size = 8;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
  int64_t id = 3;
  TRY(TRITONBACKEND_RequestOutputBufferProperties(request, "OUTPUT0", &size, &memory_type, &id));
  const std::string text = std::string(TRITONSERVER_MemoryTypeString(memory_type)) + " " +
                           std::to_string(id) + ", " + std::to_string(size) + " bytes";
  TRY(TRITONBACKEND_RequestOutputBufferProperties(request, nullptr, nullptr, &memory_type, &id));
  return TRITONBACKEND_ResponseSetStringParameter(response, "says", text.c_str());
}

TRITONSERVER_Error* CountInState(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response,
                                 bool updates) {
  TRITONBACKEND_State* state = nullptr;
  const int64_t shape[] = {1, 1};
  TRY(TRITONBACKEND_StateNew(&state, request, "STATE", TRITONSERVER_TYPE_INT32, shape, 2));
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "STATE", &input));
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
  int64_t id = 3;
  const void* from = nullptr;
  uint64_t size = 0;
  TRY(TRITONBACKEND_InputBuffer(input, 0, &from, &size, &memory_type, &id));
  int32_t value = 0;
  if (size != sizeof(value)) return Fail("the state has another size");
  std::memcpy(&value, from, sizeof(value));
  ++value;
  void* to = nullptr;
  memory_type = TRITONSERVER_MEMORY_GPU;
  TRY(TRITONBACKEND_StateBuffer(state, &to, sizeof(value), &memory_type, &id));
  TRITONSERVER_BufferAttributes* attributes = nullptr;
  TRY(TRITONBACKEND_StateBufferAttributes(state, &attributes));
  size_t said = 0;
  TRY(TRITONSERVER_BufferAttributesByteSize(attributes, &said));
  if (memory_type != TRITONSERVER_MEMORY_CPU || id != 0 || said != sizeof(value)) {
    return Fail("the state's buffer is not what was asked for");
  }
  std::memcpy(to, &value, sizeof(value));
  if (updates) TRY(TRITONBACKEND_StateUpdate(state));
  return TRITONBACKEND_ResponseSetStringParameter(response, "says", std::to_string(value).c_str());
}

TRITONSERVER_Error* ReportResponse(TRITONBACKEND_ModelInstance* instance,
                                   TRITONBACKEND_ResponseFactory* factory, uint64_t output_start,
                                   TRITONSERVER_Error* failure) {
  TRITONBACKEND_ModelInstanceResponseStatistics* report = nullptr;
  TRY(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&report));
  TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(report, instance));
  TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(report, factory));
  TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(report, 10));
  TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(report, output_start));
  TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(report, 30));
  TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(report, failure));
  TRY(TRITONBACKEND_ModelInstanceReportResponseStatistics(report));
  return TRITONBACKEND_ModelInstanceResponseStatisticsDelete(report);
}

TRITONSERVER_Error* SendMany(TRITONBACKEND_ModelInstance* instance,
                             TRITONBACKEND_Request* request) {
  TRITONBACKEND_ResponseFactory* factory = nullptr;
  TRY(TRITONBACKEND_ResponseFactoryNew(&factory, request));
  TRY(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
  for (int i = 0; i < 3; ++i) {
    TRITONBACKEND_Response* response = nullptr;
    TRY(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    TRY(AddBuffer(response, "OUTPUT0", 8));
    TRY(TRITONBACKEND_ResponseSend(response, 0, nullptr));
    TRY(ReportResponse(instance, factory, 15, nullptr));
  }
  TRITONSERVER_Error* const cancelled = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_CANCELLED, "");
  TRITONSERVER_Error* const reported = ReportResponse(instance, factory, 15, cancelled);
  TRITONSERVER_ErrorDelete(cancelled);
  TRY(reported);
  TRY(ReportResponse(instance, factory, 0, nullptr));
  TRY(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
  return TRITONBACKEND_ResponseFactoryDelete(factory);
}

// Says that a model or an instance, whose function is `report`, holds `bytes` on `type` 1.
template <typename Handle>
TRITONSERVER_Error* ReportMemory(TRITONSERVER_Error* (*report)(Handle*,
                                                               TRITONSERVER_BufferAttributes**,
                                                               uint32_t),
                                 Handle* handle, TRITONSERVER_MemoryType type, size_t bytes) {
  TRITONSERVER_BufferAttributes* use = nullptr;
  TRY(TRITONSERVER_BufferAttributesNew(&use));
  TRY(TRITONSERVER_BufferAttributesSetMemoryType(use, type));
  TRY(TRITONSERVER_BufferAttributesSetMemoryTypeId(use, 1));
  TRY(TRITONSERVER_BufferAttributesSetByteSize(use, bytes));
  TRY(report(handle, &use, 1));
  return TRITONSERVER_BufferAttributesDelete(use);
}

// Records the error of a call; nothing for a success.
void Report(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  Note(TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

// Calls all functions for reading a request that the backend has released.
void AskReleased(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request,
                 TRITONBACKEND_Input* input) {
  const char* text = nullptr;
  const void* value = nullptr;
  uint32_t number = 0;
  uint64_t size = 0;
  bool flag = false;
  TRITONSERVER_ParameterType type;
  TRITONSERVER_DataType datatype;
  const int64_t* shape = nullptr;
  TRITONSERVER_InferenceTrace* trace = nullptr;
  TRITONBACKEND_Input* found = nullptr;
  Report(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, true, 10, 20, 30, 40));
  Report(TRITONBACKEND_RequestId(request, &text));
  if (std::string(text) != "late") Note("another id");
  Report(TRITONBACKEND_RequestCorrelationId(request, &size));
  Report(TRITONBACKEND_RequestCorrelationIdString(request, &text));
  Report(TRITONBACKEND_RequestFlags(request, &number));
  Report(TRITONBACKEND_RequestIsCancelled(request, &flag));
  Report(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request, &size));
  Report(TRITONBACKEND_RequestParameterCount(request, &number));
  Report(TRITONBACKEND_RequestParameter(request, 0, &text, &type, &value));
  Report(TRITONBACKEND_RequestInputCount(request, &number));
  Report(TRITONBACKEND_RequestInputName(request, 0, &text));
  Report(TRITONBACKEND_RequestInput(request, "INPUT0", &found));
  if (found != input) Note("another input");
  Report(TRITONBACKEND_InputProperties(input, &text, &datatype, &shape, &number, &size, nullptr));
  if (size != 8 || shape[1] != 2) Note("other properties");
  Report(TRITONBACKEND_RequestOutputCount(request, &number));
  Report(TRITONBACKEND_RequestOutputName(request, 0, &text));
  Report(TRITONBACKEND_RequestTrace(request, &trace));
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  // These were freed with the request.
  TRITONSERVER_BufferAttributes* attributes = nullptr;
  TRITONBACKEND_State* state = nullptr;
  size_t bytes = 8;
  Report(TRITONBACKEND_InputBuffer(input, 0, &value, &size, &memory_type, &id));
  Report(TRITONBACKEND_InputBufferForHostPolicy(input, "", 0, &value, &size, &memory_type, &id));
  Report(TRITONBACKEND_InputBufferAttributes(input, 0, &value, &attributes));
  if (value != nullptr) Note("a buffer that is gone");
  Report(
      TRITONBACKEND_RequestOutputBufferProperties(request, "OUTPUT0", &bytes, &memory_type, &id));
  Report(TRITONBACKEND_StateNew(&state, request, "STATE", TRITONSERVER_TYPE_INT32, shape, 2));
  Report(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
  Report(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
}

TRITONSERVER_Error* ServeLate(const std::string& wish, TRITONBACKEND_ModelInstance* instance,
                              TRITONBACKEND_Request* request) {
  TRITONBACKEND_Response* response = nullptr;
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
  if (wish == "late") TRY(TRITONBACKEND_ResponseNew(&response, request));
  TRY(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
  if (wish == "late_refusal") return nullptr;
  TRITONBACKEND_ResponseFactory* factory = nullptr;
  if (wish == "late_factory") {
    TRY(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    TRY(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
  } else if (wish == "late_response") {
    TRY(TRITONBACKEND_ResponseNew(&response, request));
  }
  TRY(AddBuffer(response, "OUTPUT0", 8));
  TRY(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, nullptr));
  if (wish == "late") AskReleased(instance, request, input);
  return factory == nullptr ? nullptr : TRITONBACKEND_ResponseFactoryDelete(factory);
}

// Fills the response and returns its error; null for success.
TRITONSERVER_Error* Fill(const std::string& wish, TRITONBACKEND_Request* request,
                         TRITONBACKEND_Response* response) {
  if (wish == "error") return Fail("as you wished");
  if (wish == "unknown_output") return AddBuffer(response, "OUTPUT9", 8);
  if (wish == "no_bytes") return AddBuffer(response, "OUTPUT0", 0);
  if (wish == "partial") return Partial(response);
  if (wish == "two_buffers") return TwoBuffers(response);
  if (wish == "bad_index") return BadIndex(request);
  if (wish == "properties") return OutputProperties(request, response);
  if (wish == "count") return CountInState(request, response, true);
  if (wish == "count_in_vain") return CountInState(request, response, false);
  if (wish == "describe") return Describe(request, response);
  if (wish == "reschedule") {
    return TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);
  }
  return Echo(request, response);
}

void Serve(const std::string& wish, TRITONBACKEND_ModelInstance* instance,
           TRITONBACKEND_Request* request) {
  if (wish == "many") {
    return Report(SendMany(instance, request));
  }
  if (wish.starts_with("late")) return Report(ServeLate(wish, instance, request));
  if (wish == "give_back") {
    TRITONSERVER_Error* const error =
        TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);
    if (error == nullptr) return Note("given back");
    Report(error);
    return Report(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  if (wish != "silent") {
    TRITONBACKEND_Response* response = nullptr;
    TRITONBACKEND_ResponseNew(&response, request);
    TRITONSERVER_Error* error = Fill(wish, request, response);
    TRITONBACKEND_ModelInstanceReportStatistics(instance, request, error == nullptr, 10, 20, 30,
                                                40);
    TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
    TRITONSERVER_ErrorDelete(error);
  }
  if (wish == "twice") {
    TRITONBACKEND_Response* response = nullptr;
    TRITONBACKEND_ResponseNew(&response, request);
    if (TRITONSERVER_Error* error =
            TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, nullptr)) {
      Note(TRITONSERVER_ErrorMessage(error));
      TRITONSERVER_ErrorDelete(error);
    }
  }
  TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
}

}  // namespace

extern "C" {

// Returns the events since the last call in `to`, which has room for `size` bytes.
void TestEvents(char* to, size_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::strncpy(to, events.c_str(), size - 1);
  to[size - 1] = '\0';
  events.clear();
}

uint32_t NEREIDBACKEND_Traits(void) { return TEST_TRAITS; }

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  TRITONSERVER_Message* message = nullptr;
  TRY(TRITONBACKEND_BackendConfig(backend, &message));
  const char* base = nullptr;
  size_t size = 0;
  TRY(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
  const std::string config(base, size);
  Note("Initialize");
  if (config.find("\"note-config\":\"true\"") != std::string::npos) Note(config);
  if (config.find("\"fail\":\"true\"") != std::string::npos) return Fail("told to fail");
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend*) {
  Note("Finalize");
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend*,
                                                      TRITONBACKEND_BackendAttribute* attributes) {
  if (TEST_TRAITS != 0) {
    TRY(TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true));
  }
  return TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
      attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 2, nullptr, 0);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  const char* name = nullptr;
  uint64_t version = 0;
  TRY(TRITONBACKEND_ModelName(model, &name));
  TRY(TRITONBACKEND_ModelVersion(model, &version));
  Note(std::string("ModelInitialize ") + name + " " + std::to_string(version));
  if (Says(model, "fail_model")) return Fail("no such model");
  if (Says(model, "report_memory")) {
    TRY(ReportMemory(TRITONBACKEND_ModelReportMemoryUsage, model, TRITONSERVER_MEMORY_CPU, 1000));
  }
  bool completes = false;
  TRY(TRITONBACKEND_ModelAutoCompleteConfig(model, &completes));
  if (Says(model, "complete") && completes) {
    bool gives = false;
    TRY(NEREIDBACKEND_ModelGivesMaxBatchSize(model, &gives));
    TRY(NEREIDBACKEND_ModelExplain(model, "batching", "{}"));
    TRY(NEREIDBACKEND_ModelExplain(model, "batching",
                                   gives ? R"({"reason":"given"})" : R"({"reason":"made up"})"));
    TRY(SetConfig(model));
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model*) {
  Note("ModelFinalize");
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind;
  int32_t device = -1;
  bool is_passive = false;
  TRITONBACKEND_Model* model = nullptr;
  TRY(TRITONBACKEND_ModelInstanceName(instance, &name));
  TRY(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  TRY(TRITONBACKEND_ModelInstanceDeviceId(instance, &device));
  TRY(TRITONBACKEND_ModelInstanceIsPassive(instance, &is_passive));
  TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
  Note(std::string("InstanceInitialize ") + name + " " +
       TRITONSERVER_InstanceGroupKindString(kind) + " " + std::to_string(device) +
       (is_passive ? " passive" : ""));
  if (Says(model, "fail_instance")) return Fail("no such instance");
  if (Says(model, "report_memory")) {
    TRY(ReportMemory(TRITONBACKEND_ModelInstanceReportMemoryUsage, instance,
                     TRITONSERVER_MEMORY_CPU, 10));
    TRY(ReportMemory(TRITONBACKEND_ModelInstanceReportMemoryUsage, instance,
                     TRITONSERVER_MEMORY_GPU, 7));
  }
  if (Says(model, "meet_two")) TRY(MeetAnother());
  if (Says(model, "set_late")) {
    if (TRITONSERVER_Error* error = SetConfig(model)) {
      Note(TRITONSERVER_ErrorMessage(error));
      TRITONSERVER_ErrorDelete(error);
    }
  }
  return TRITONBACKEND_ModelInstanceSetState(instance,
                                             new InstanceState{std::this_thread::get_id()});
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  void* state = nullptr;
  TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
  delete static_cast<InstanceState*>(state);
  Note("InstanceFinalize");
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance* instance) {
  TRITONBACKEND_Model* model = nullptr;
  TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
  return Says(model, "not_ready") ? Fail("still warming up") : nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  void* state = nullptr;
  TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
  if (TEST_TRAITS == 0 &&
      static_cast<InstanceState*>(state)->thread != std::this_thread::get_id()) {
    return Fail("executed on another thread than initialized");
  }
  // Keeps its memory, because a backend in steady state allocates nothing.
  thread_local std::vector<std::string> wishes;
  wishes.clear();
  for (uint32_t r = 0; r < request_count; ++r) {
    const char* id = nullptr;
    TRY(TRITONBACKEND_RequestId(requests[r], &id));
    wishes.emplace_back(id);
    if (wishes.back() == "refuse") return Fail("refused");
    if (wishes.back() == "throw") throw std::runtime_error("thrown");
  }
  TRY(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, request_count, 10, 20, 30, 40));
  for (uint32_t r = 0; r < request_count; ++r) {
    Serve(wishes[r], instance, requests[r]);
    if (wishes[r] == "late_refusal") return Fail("refused too late");
  }
  return nullptr;
}

}  // extern "C"
