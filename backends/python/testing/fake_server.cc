// SPDX-License-Identifier: Apache-2.0
#include "python_backend/testing/fake_server.h"

#include <utility>

struct TRITONSERVER_MetricArgs {
  std::vector<double> buckets;
};

struct TRITONSERVER_ResponseAllocator {
  TRITONSERVER_ResponseAllocatorAllocFn_t allocate;
  TRITONSERVER_ResponseAllocatorReleaseFn_t release;
};

// The buffer of one output.
struct FakeOutput {
  FakeTensor tensor;
  void* buffer = nullptr;
  void* user = nullptr;
};

struct TRITONSERVER_InferenceResponse {
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  std::vector<FakeOutput> outputs;
  std::vector<std::pair<std::string, int64_t>> parameters;
  std::string error;
};

namespace nereid::python {

FakeObjects& Fakes() {
  static FakeObjects objects;
  return objects;
}

namespace {

void Complete(TRITONSERVER_InferenceRequest* request, TRITONSERVER_InferenceResponse* response,
              bool is_final) {
  request->complete(response, is_final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0,
                    request->complete_user);
}

TRITONSERVER_Error* Refuse(const TRITONSERVER_Server* server) {
  return server->refusal.empty()
             ? nullptr
             : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, server->refusal.c_str());
}

TRITONSERVER_Error* Note(TRITONSERVER_Server* server, const std::string& event) {
  const backend::MutexLock lock(server->mutex);
  server->events.push_back(event);
  return Refuse(server);
}

}  // namespace

void Respond(TRITONSERVER_InferenceRequest* request, const std::vector<FakeTensor>& outputs,
             bool is_final, const std::map<std::string, int64_t>& parameters) {
  auto* const response = new TRITONSERVER_InferenceResponse{.allocator = request->allocator};
  for (const FakeTensor& tensor : outputs) {
    FakeOutput output{.tensor = tensor};
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    TRITONSERVER_Error* const error = request->allocator->allocate(
        request->allocator, tensor.name.c_str(), tensor.bytes.size(), TRITONSERVER_MEMORY_CPU, 0,
        request->allocator_user, &output.buffer, &output.user, &type, &id);
    if (error != nullptr) {
      response->error = TRITONSERVER_ErrorMessage(error);
      TRITONSERVER_ErrorDelete(error);
      break;
    }
    if (!tensor.bytes.empty())
      tensor.bytes.copy(static_cast<char*>(output.buffer), tensor.bytes.size());
    response->outputs.push_back(std::move(output));
  }
  response->parameters.assign(parameters.begin(), parameters.end());
  Complete(request, response, is_final);
}

void RespondWithError(TRITONSERVER_InferenceRequest* request, const std::string& text) {
  Complete(request, new TRITONSERVER_InferenceResponse{.error = text}, true);
}

void End(TRITONSERVER_InferenceRequest* request) { Complete(request, nullptr, true); }

void HandBack(TRITONSERVER_InferenceRequest* request) {
  request->release(request, TRITONSERVER_REQUEST_RELEASE_ALL, request->release_user);
}

}  // namespace nereid::python

using nereid::python::Fakes;

extern "C" {

// --- Metrics ---

TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily** family,
                                                 const TRITONSERVER_MetricKind kind,
                                                 const char* name, const char* description) {
  *family = new TRITONSERVER_MetricFamily{kind, name, description};
  Fakes().families.insert(*family);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily* family) {
  for (const TRITONSERVER_Metric* const metric : Fakes().metrics) {
    if (metric->family == family) {
      return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "the family has metrics");
    }
  }
  Fakes().families.erase(family);
  delete family;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs** args) {
  *args = new TRITONSERVER_MetricArgs;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs* args,
                                                        const double* buckets,
                                                        const uint64_t count) {
  args->buckets.assign(buckets, buckets + count);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs* args) {
  delete args;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric** metric,
                                                   TRITONSERVER_MetricFamily* family,
                                                   const TRITONSERVER_Parameter** labels,
                                                   const uint64_t label_count,
                                                   const TRITONSERVER_MetricArgs* args) {
  *metric = new TRITONSERVER_Metric{.family = family};
  for (uint64_t i = 0; i < label_count; ++i) (*metric)->labels[labels[i]->name] = labels[i]->value;
  if (args != nullptr) (*metric)->buckets = args->buckets;
  Fakes().metrics.insert(*metric);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric** metric,
                                           TRITONSERVER_MetricFamily* family,
                                           const TRITONSERVER_Parameter** labels,
                                           const uint64_t label_count) {
  return TRITONSERVER_MetricNewWithArgs(metric, family, labels, label_count, nullptr);
}
TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric) {
  Fakes().metrics.erase(metric);
  delete metric;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricValue(TRITONSERVER_Metric* metric, double* value) {
  *value = metric->value;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value) {
  metric->value += value;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricSet(TRITONSERVER_Metric* metric, double value) {
  if (metric->family->kind == TRITONSERVER_METRIC_KIND_COUNTER) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "a counter cannot be set");
  }
  metric->value = value;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricObserve(TRITONSERVER_Metric* metric, double value) {
  metric->observed.push_back(value);
  return nullptr;
}

// --- Models ---

TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name,
                                                  const TRITONSERVER_ParameterType,
                                                  const void* value) {
  return new TRITONSERVER_Parameter{name, static_cast<const char*>(value)};
}
TRITONSERVER_Parameter* TRITONSERVER_ParameterBytesNew(const char* name, const void* bytes,
                                                       const uint64_t size) {
  return new TRITONSERVER_Parameter{name, {static_cast<const char*>(bytes), size}};
}
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter) { delete parameter; }
TRITONSERVER_Error* TRITONSERVER_ServerLoadModelWithParameters(
    TRITONSERVER_Server* server, const char* model, const TRITONSERVER_Parameter** parameters,
    const uint64_t count) {
  std::string event = std::string("load ") + model;
  for (uint64_t i = 0; i < count; ++i)
    event += " " + parameters[i]->name + "=" + parameters[i]->value;
  return nereid::python::Note(server, event);
}
TRITONSERVER_Error* TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server* server, const char* model) {
  return nereid::python::Note(server, std::string("unload ") + model);
}
TRITONSERVER_Error* TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server* server,
                                                                const char* model) {
  return nereid::python::Note(server, std::string("unload with dependents ") + model);
}
TRITONSERVER_Error* TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server* server, const char* model,
                                                    const int64_t version, bool* is_ready) {
  *is_ready = server->ready.contains(model) && version <= 1;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server* server,
                                                                  const char* model, const int64_t,
                                                                  uint32_t* properties, void**) {
  *properties =
      server->decoupled.contains(model) ? TRITONSERVER_TXN_DECOUPLED : TRITONSERVER_TXN_ONE_TO_ONE;
  return nullptr;
}

// --- Requests ---

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorNew(
    TRITONSERVER_ResponseAllocator** allocator, TRITONSERVER_ResponseAllocatorAllocFn_t allocate,
    TRITONSERVER_ResponseAllocatorReleaseFn_t release, TRITONSERVER_ResponseAllocatorStartFn_t) {
  *allocator = new TRITONSERVER_ResponseAllocator{allocate, release};
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetQueryFunction(
    TRITONSERVER_ResponseAllocator*, TRITONSERVER_ResponseAllocatorQueryFn_t) {
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestNew(TRITONSERVER_InferenceRequest** request,
                                                     TRITONSERVER_Server*, const char* model,
                                                     const int64_t version) {
  ++Fakes().requests;
  *request = new TRITONSERVER_InferenceRequest{.model = model, .version = version};
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestDelete(TRITONSERVER_InferenceRequest* request) {
  --Fakes().requests;
  delete request;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest* request,
                                                       const char* id) {
  request->id = id;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationId(
    TRITONSERVER_InferenceRequest* request, const uint64_t id) {
  request->correlation_id = id;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest* request, const char* id) {
  request->correlation_text = id;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest* request,
                                                          const uint32_t flags) {
  request->flags = flags;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest* request, const uint64_t timeout_us) {
  request->timeout_us = timeout_us;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest* request, const char* name, const char* value) {
  request->parameters[name] = value;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetIntParameter(
    TRITONSERVER_InferenceRequest* request, const char* name, const int64_t value) {
  request->parameters[name] = std::to_string(value);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetBoolParameter(
    TRITONSERVER_InferenceRequest* request, const char* name, const bool value) {
  request->parameters[name] = value ? "true" : "false";
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddInput(TRITONSERVER_InferenceRequest* request,
                                                          const char* name,
                                                          const TRITONSERVER_DataType datatype,
                                                          const int64_t* shape,
                                                          const uint64_t dims) {
  request->inputs.push_back({name, datatype, {shape, shape + dims}, {}});
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest* request, const char*, const void* data, const size_t size,
    TRITONSERVER_MemoryType, int64_t) {
  request->inputs.back().bytes.append(static_cast<const char*>(data), size);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRequestedOutput(
    TRITONSERVER_InferenceRequest* request, const char* name) {
  request->wanted.push_back(name);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest* request, TRITONSERVER_InferenceRequestReleaseFn_t release,
    void* user) {
  request->release = release;
  request->release_user = user;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest* request, TRITONSERVER_ResponseAllocator* allocator,
    void* allocator_user, TRITONSERVER_InferenceResponseCompleteFn_t complete, void* user) {
  request->allocator = allocator;
  request->allocator_user = allocator_user;
  request->complete = complete;
  request->complete_user = user;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_ServerInferAsync(TRITONSERVER_Server* server,
                                                  TRITONSERVER_InferenceRequest* request,
                                                  TRITONSERVER_InferenceTrace*) {
  if (TRITONSERVER_Error* const error = nereid::python::Refuse(server)) return error;
  server->sent.push_back(request);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceRequestCancel(TRITONSERVER_InferenceRequest* request) {
  request->parameters["cancelled"] = "true";
  return nullptr;
}

// --- Responses ---

TRITONSERVER_Error* TRITONSERVER_InferenceResponseError(TRITONSERVER_InferenceResponse* response) {
  return response->error.empty()
             ? nullptr
             : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, response->error.c_str());
}
TRITONSERVER_Error* TRITONSERVER_InferenceResponseDelete(TRITONSERVER_InferenceResponse* response) {
  for (const FakeOutput& output : response->outputs) {
    response->allocator->release(response->allocator, output.buffer, output.user,
                                 output.tensor.bytes.size(), TRITONSERVER_MEMORY_CPU, 0);
  }
  delete response;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutputCount(
    TRITONSERVER_InferenceResponse* response, uint32_t* count) {
  *count = static_cast<uint32_t>(response->outputs.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse* response, const uint32_t index, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint64_t* dims, const void** base,
    size_t* size, TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id, void** user) {
  const FakeOutput& output = response->outputs[index];
  *name = output.tensor.name.c_str();
  *datatype = output.tensor.datatype;
  *shape = output.tensor.shape.data();
  *dims = output.tensor.shape.size();
  *base = output.buffer;
  *size = output.tensor.bytes.size();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  *user = output.user;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameterCount(
    TRITONSERVER_InferenceResponse* response, uint32_t* count) {
  *count = static_cast<uint32_t>(response->parameters.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameter(
    TRITONSERVER_InferenceResponse* response, const uint32_t index, const char** name,
    TRITONSERVER_ParameterType* type, const void** value) {
  *name = response->parameters[index].first.c_str();
  *type = TRITONSERVER_PARAMETER_INT;
  *value = &response->parameters[index].second;
  return nullptr;
}

}  // extern "C"
