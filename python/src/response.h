// SPDX-License-Identifier: Apache-2.0
// A response, copied out of the server's object on the server's thread, so that the server does not
// wait for Python to read it: a model can be unloaded while its outputs are still in use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <pybind11/pybind11.h>

#include "buffer.h"
#include "triton/core/tritonserver.h"

namespace nereid::python {

// The outputs to classify, and how many classes of each to return.
struct Classification {
  std::map<std::string, uint32_t> classes;
  bool has_batches = false;  // whether the first dimension is the batch
};

// Calls TRITONSERVER_InferenceResponseDelete.
struct ResponseDeleter {
  void operator()(TRITONSERVER_InferenceResponse* response) const;
};
using ResponseHandle = std::unique_ptr<TRITONSERVER_InferenceResponse, ResponseDeleter>;

// A response. Thread-compatible; made without the GIL, converted to Python objects with it.
class Response {
 public:
  // `response` may be null: the last one of a decoupled model often only marks the end.
  // `classification` is null if no classes were requested.
  Response(TRITONSERVER_InferenceResponse* response, bool is_final,
           const Classification* classification);

  bool is_final() const { return is_final_; }

  // Returns (error, model name, model version, request id, parameters, outputs, classes, is final),
  // where an output is (name, data type, shape, address, size, memory type, memory type id, owner).
  // All but the last are None if there was no response.
  pybind11::tuple ToPython();

 private:
  using Value = std::variant<std::string, int64_t, bool, double>;
  // An output of the response.
  struct Output {
    std::string name;
    int type = 0;
    std::vector<int64_t> shape;
    const void* data = nullptr;
    size_t size = 0;
    int memory_type = 0;
    int64_t memory_type_id = 0;
    Buffer owner;
  };

  void Read(TRITONSERVER_InferenceResponse* response);
  void ReadParameters(TRITONSERVER_InferenceResponse* response);
  void ReadOutputs(TRITONSERVER_InferenceResponse* response);
  pybind11::object ClassesToPython() const;
  pybind11::list BestClasses(uint32_t index, uint32_t count) const;

  bool is_empty_ = true;
  bool is_final_ = false;
  int error_code_ = -1;  // -1: no error
  std::string error_;
  std::string model_name_;
  int64_t model_version_ = 0;
  std::string request_id_;
  std::vector<std::pair<std::string, Value>> parameters_;
  std::vector<Output> outputs_;
  // Kept for its labels if classes were requested.
  ResponseHandle kept_;
  const Classification* classification_ = nullptr;
};

// The allocator of all requests: outputs are stored in Blocks. Lives as long as the process.
TRITONSERVER_ResponseAllocator* OutputAllocator();

}  // namespace nereid::python
