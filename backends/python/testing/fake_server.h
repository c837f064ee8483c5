// SPDX-License-Identifier: Apache-2.0
// A fake of the server functions that a model's calls use: metrics, model control and inference
// requests. A test sets the structs and inspects them afterwards; the backend's side of a request
// is in backend_kit/testing/fake_host.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend_kit/mutex.h"
#include "triton/core/tritonserver.h"

struct TRITONSERVER_MetricFamily {
  TRITONSERVER_MetricKind kind = TRITONSERVER_METRIC_KIND_COUNTER;
  std::string name;
  std::string description;
};

struct TRITONSERVER_Metric {
  TRITONSERVER_MetricFamily* family = nullptr;
  std::map<std::string, std::string> labels;
  std::vector<double> buckets;
  double value = 0;
  std::vector<double> observed;
};

struct TRITONSERVER_Parameter {
  std::string name;
  std::string value;
};

// A tensor of a request or of a response.
struct FakeTensor {
  std::string name;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::string bytes;
};

struct TRITONSERVER_InferenceRequest {
  std::string model;
  int64_t version = -1;
  std::string id;
  uint64_t correlation_id = 0;
  std::string correlation_text;
  uint32_t flags = 0;
  uint64_t timeout_us = 0;
  std::map<std::string, std::string> parameters;
  std::vector<FakeTensor> inputs;
  std::vector<std::string> wanted;
  TRITONSERVER_InferenceRequestReleaseFn_t release = nullptr;
  void* release_user = nullptr;
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  void* allocator_user = nullptr;
  TRITONSERVER_InferenceResponseCompleteFn_t complete = nullptr;
  void* complete_user = nullptr;
};

struct TRITONSERVER_Server {
  std::set<std::string> ready;      // models
  std::set<std::string> decoupled;  // models among them
  std::string refusal;              // the error of loads, unloads and inferences; empty for success
  nereid::backend::Mutex mutex;
  std::vector<std::string> events NEREID_KIT_GUARDED_BY(mutex);  // loads and unloads
  std::vector<TRITONSERVER_InferenceRequest*> sent;  // by ServerInferAsync, not released
};

namespace nereid::python {

// The number of objects in this process; of metrics the server knows no more.
struct FakeObjects {
  std::set<TRITONSERVER_MetricFamily*> families;
  std::set<TRITONSERVER_Metric*> metrics;
  int requests = 0;  // to other models
};
FakeObjects& Fakes();

// Sends the response of a model to a request, as the server does: with these tensors, with an
// error, or neither for an end without a response.
void Respond(TRITONSERVER_InferenceRequest* request, const std::vector<FakeTensor>& outputs,
             bool is_final, const std::map<std::string, int64_t>& parameters = {});
void RespondWithError(TRITONSERVER_InferenceRequest* request, const std::string& text);
void End(TRITONSERVER_InferenceRequest* request);
// Calls the release callback of the request.
void HandBack(TRITONSERVER_InferenceRequest* request);

}  // namespace nereid::python
