// SPDX-License-Identifier: Apache-2.0
// Inference requests that a model makes of other models of its server ("business logic scripting").
// Inputs stay where the worker put them, and outputs are written where it reads them.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "python_backend/decode.h"
#include "python_backend/worker.h"

namespace nereid::python {

class Pending;
struct InferCall;

// Of one worker. Confined to the thread of its calls.
class Inferences {
 public:
  // `server` may be null: then all fail.
  explicit Inferences(TRITONSERVER_Server* server) : server_(server) {}

  // Starts a request, which `record` begins and `reader` goes on with; `parent`, which may be null,
  // is the one whose trace it belongs to. The call is answered with the response; or, for many
  // responses, with the number of a stream.
  void Infer(const std::shared_ptr<Worker>& worker, const CallBlock& call,
             const InferRecord& record, Reader& reader, Pending* parent);
  // Answers the call with the stream's next response, once there is one.
  void Next(const std::shared_ptr<Worker>& worker, const CallBlock& call, uint64_t stream);
  void Cancel(uint64_t stream);
  // What still comes is dropped.
  void Close(uint64_t stream);

 private:
  TRITONSERVER_Server* const server_;
  const std::shared_ptr<std::atomic<uint32_t>> open_ = std::make_shared<std::atomic<uint32_t>>(0);
  uint64_t last_ = 0;
  std::map<uint64_t, std::shared_ptr<InferCall>> streams_;
};

}  // namespace nereid::python
