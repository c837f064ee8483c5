// SPDX-License-Identifier: Apache-2.0
// Inference requests of a model to other models of its server ("business logic scripting"). Inputs
// stay where the worker wrote them, and outputs are written where the worker reads them.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "python_backend/decode.h"
#include "python_backend/worker.h"

namespace nereid::python {

class Pending;
struct InferCall;

// The inference requests of one worker. Confined to the thread of its calls.
class Inferences {
 public:
  // If `server` is null, all requests fail.
  explicit Inferences(TRITONSERVER_Server* server) : server_(server) {}

  // Starts a request: `record` is its beginning and `reader` has the rest. `parent`, which may be
  // null, is the request whose trace it belongs to. The reply to the call is the response or, for a
  // request with many responses, the number of a stream.
  void Infer(const std::shared_ptr<Worker>& worker, const CallBlock& call,
             const InferRecord& record, Reader& reader, Pending* parent);
  // Replies to the call with the stream's next response, as soon as there is one.
  void Next(const std::shared_ptr<Worker>& worker, const CallBlock& call, uint64_t stream);
  void Cancel(uint64_t stream);
  // Closes a stream. Later responses are dropped.
  void Close(uint64_t stream);

 private:
  TRITONSERVER_Server* const server_;
  const std::shared_ptr<std::atomic<uint32_t>> open_ = std::make_shared<std::atomic<uint32_t>>(0);
  uint64_t last_ = 0;
  std::map<uint64_t, std::shared_ptr<InferCall>> streams_;
};

}  // namespace nereid::python
