// SPDX-License-Identifier: Apache-2.0
// The server's side of the backend API, for tests of backends in one process: requests with tensors
// in plain memory, and responses that record what they receive. Only functions that our backends
// call during a request are implemented; a test fills in the structs and checks them afterwards.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "triton/core/tritonbackend.h"

// An error of the fake server.
struct TRITONSERVER_Error {
  TRITONSERVER_Error_Code code;
  std::string text;
};

// An input of a request, set by the test.
struct TRITONBACKEND_Input {
  std::string name;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::vector<std::string> buffers;
  std::vector<std::string_view> views;  // memory elsewhere, in the place of the buffers
};

// An output that the backend added.
struct TRITONBACKEND_Output {
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::string bytes;
};

// A new value of a state.
struct TRITONBACKEND_State {
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::string bytes;
  int times_updated = 0;
};

// A parameter of a request; the type says which value counts.
struct FakeParameter {
  std::string name;
  TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
  std::string text;
  int64_t number = 0;
  double real = 0;
  bool truth = false;
};

// One of the responses to a request.
struct SentResponse {
  std::map<std::string, TRITONBACKEND_Output> outputs;
  std::map<std::string, std::string> parameters;  // numbers and truth values as text
  std::string error;
  bool is_final = false;
};

// The outcome of a request.
struct Answer {
  std::map<std::string, TRITONBACKEND_Output> outputs;
  std::map<std::string, TRITONBACKEND_State> states;
  std::string error;
  int times_sent = 0;
  int times_released = 0;
  int successes_reported = 0;
  int failures_reported = 0;
  std::vector<SentResponse> sent;  // an end without a response, too
  int open_factories = 0;
};

// A request, set by the test.
struct TRITONBACKEND_Request {
  std::vector<TRITONBACKEND_Input> inputs;
  std::vector<std::string> wanted;
  Answer answer;
  std::string id;
  uint64_t correlation_id = 0;
  std::string correlation_text;  // in the place of the number, unless it is empty
  std::vector<FakeParameter> parameters;
  uint32_t flags = 0;
  uint64_t timeout_us = 0;
  bool is_cancelled = false;
  // If valid: until it is ready, the client does not read.
  std::shared_future<void> reading;
};

// A response that the backend is filling.
struct TRITONBACKEND_Response {
  TRITONBACKEND_Request* request = nullptr;
  std::map<std::string, TRITONBACKEND_Output> outputs;
  std::map<std::string, std::string> parameters;
};

// Makes responses to a request after its execution.
struct TRITONBACKEND_ResponseFactory {
  TRITONBACKEND_Request* request = nullptr;
};

namespace nereid::backend {

// What was logged since the last call, with file and line: "main.cc:7 text". Thread-safe.
std::vector<std::string> TakeLog();

}  // namespace nereid::backend

// The instance that the requests are executed on.
struct TRITONBACKEND_ModelInstance {
  std::vector<uint64_t> executed_batches;  // the reported batch sizes
};
