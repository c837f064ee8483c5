// SPDX-License-Identifier: Apache-2.0
// One execution of a Python function: the requests of a batch, from the server to their last
// responses. The Python class _core.Job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "backend_kit/responses.h"
#include "buffer.h"

namespace nereid::python {

// Owns the requests and completes each exactly once: what has no last response when this is
// destroyed gets an error. Confined to one thread at a time.
class Job {
 public:
  // What the execution's model is.
  struct Kind {
    bool is_batching = false;
    bool is_decoupled = false;
  };

  // Takes ownership of the requests.
  Job(TRITONBACKEND_ModelInstance* instance, Kind kind, TRITONBACKEND_Request** requests,
      uint32_t count);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  // With or without the GIL.
  ~Job();

  // Copies the inputs, each into one tensor for the whole batch, which Python may keep and change.
  // Without the GIL.
  backend::Error Gather();
  // Sends an error as the last response to every request that has not had one. Without the GIL.
  void FailAll(TRITONSERVER_Error_Code code, const std::string& message);

  // Needs the GIL. Returns [(name, data type, shape, Buffer)], once.
  pybind11::list TakeInputs();
  // Needs the GIL. The number of rows of each request; 1 for a model without batching.
  pybind11::list Rows() const;
  // Needs the GIL. Returns [(id, correlation id, flags, parameters)].
  pybind11::list Requests() const;
  // Needs the GIL and releases it. Sends `outputs`, [(name, data type, shape, data, is_lent)], to
  // every request, each its own rows, as the last response unless the model is decoupled. `data` is
  // a contiguous buffer of the whole batch, or a list of Buffers, one for each request. If is_lent,
  // nothing changes the buffer any more, and it is sent from where it is. Throws before anything is
  // sent.
  void Send(const pybind11::list& outputs);
  // Send for a thread that must not wait for clients. Returns false if one reads too slowly: then a
  // thread that may wait calls SendRest before anything else is called.
  bool TrySend(const pybind11::list& outputs);
  // Releases the GIL. Sends what TrySend has left.
  void SendRest();
  // Releases the GIL. Ends the responses of a decoupled model.
  void Finish();
  // Releases the GIL. Like FailAll.
  void Fail(int code, const std::string& message);
  // Whether nobody waits for any of the responses.
  bool IsCancelled() const;

 private:
  struct Input {
    std::string name;
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    std::vector<int64_t> shape;
    Buffer data;
  };
  struct Output;

  // The shape without the dimension of the batch.
  std::span<const int64_t> RowOf(std::span<const int64_t> shape) const;
  backend::Error GatherInput(uint32_t index);
  backend::Error Fill(TRITONBACKEND_Response* response, size_t request,
                      const std::vector<Output>& outputs) const;
  Output ReadOutput(const pybind11::tuple& output) const;
  std::vector<Output> ReadOutputs(const pybind11::list& outputs) const;
  void SendAll(const std::vector<Output>& outputs, bool may_wait);
  // Without the GIL.
  void SendLeft();
  bool Wants(size_t request, const std::string& output) const;
  // Counts all requests, before their last responses.
  void Report(bool is_success);
  void Release();

  TRITONBACKEND_ModelInstance* const instance_;
  const Kind kind_;
  std::vector<TRITONBACKEND_Request*> requests_;  // empty when they are released
  std::vector<backend::ResponseSender> senders_;
  std::vector<int64_t> rows_;
  std::vector<Input> inputs_;
  std::vector<std::pair<TRITONBACKEND_Response*, backend::Error>> left_;  // by TrySend
  const uint64_t start_ns_ = backend::NowNs();
  uint64_t compute_start_ns_ = 0;
  uint64_t compute_end_ns_ = 0;
};

void RegisterJob(pybind11::module_& module);

}  // namespace nereid::python
