// SPDX-License-Identifier: Apache-2.0
// The server's side of the backend API, for tests of backends in one process: requests with tensors
// in plain memory, and responses that record what they receive. Only functions that our backends
// call during a request are implemented; a test fills in the structs and checks them afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
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

// The outcome of a request.
struct Answer {
  std::map<std::string, TRITONBACKEND_Output> outputs;
  std::map<std::string, TRITONBACKEND_State> states;
  std::string error;
  int times_sent = 0;
  int times_released = 0;
  int successes_reported = 0;
  int failures_reported = 0;
};

// A request, set by the test.
struct TRITONBACKEND_Request {
  std::vector<TRITONBACKEND_Input> inputs;
  std::vector<std::string> wanted;
  Answer answer;
};

// A response that the backend is filling.
struct TRITONBACKEND_Response {
  TRITONBACKEND_Request* request = nullptr;
  std::map<std::string, TRITONBACKEND_Output> outputs;
};

// The instance that the requests are executed on.
struct TRITONBACKEND_ModelInstance {
  std::vector<uint64_t> executed_batches;  // the reported batch sizes
};
