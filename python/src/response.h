// SPDX-License-Identifier: Apache-2.0
// A response, taken out of the server's object on the server's thread, so that nothing of the
// server's waits for Python to look at it: a model can be unloaded while its outputs are still in
// use.
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

// For which outputs the best classes are wanted, and how many.
struct Classification {
  std::map<std::string, uint32_t> classes;
  bool has_batches = false;  // whether the first dimension is one of batches
};

// Calls TRITONSERVER_InferenceResponseDelete.
struct ResponseDeleter {
  void operator()(TRITONSERVER_InferenceResponse* response) const;
};
using ResponseHandle = std::unique_ptr<TRITONSERVER_InferenceResponse, ResponseDeleter>;

// Thread-compatible; made without the GIL, turned into Python objects with it.
class Response {
 public:
  // `response` may be null: the last one of a decoupled model often says only that it is the last.
  // `classification`: null when no classes are wanted.
  Response(TRITONSERVER_InferenceResponse* response, bool is_final,
           const Classification* classification);

  bool is_final() const { return is_final_; }

  // (error, model name, model version, request id, parameters, outputs, classes, is final), where
  // an output is (name, data type, shape, address, size, memory type, memory type id, owner). All
  // but the last are None when there was no response.
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
  int error_code_ = -1;  // none
  std::string error_;
  std::string model_name_;
  int64_t model_version_ = 0;
  std::string request_id_;
  std::vector<std::pair<std::string, Value>> parameters_;
  std::vector<Output> outputs_;
  // Kept for its labels where classes are wanted.
  ResponseHandle kept_;
  const Classification* classification_ = nullptr;
};

// The allocator of every request: outputs go into Blocks. Lives as long as the process.
TRITONSERVER_ResponseAllocator* OutputAllocator();

}  // namespace nereid::python
