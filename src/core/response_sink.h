// SPDX-License-Identifier: Apache-2.0
// Where the answers of one request go: implemented by each frontend, the C API and the ensemble.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "memory/memory_type.h"

namespace nereid::core {

class Request;
class Response;
struct ComputeTimes;
struct ResponseOutput;
// Gives a response back to its pool.
struct ResponseDeleter {
  void operator()(Response* response) const;
};
using ResponsePtr = std::unique_ptr<Response, ResponseDeleter>;

// A buffer that the client named for an output (shared memory, the C API's allocator). Null data
// means that the client does not want the output's, whatever their size.
struct OutputPlacement {
  std::byte* data;
  memory::Placement where;
  void* owner = nullptr;            // handed back in ReleasePlacement
  void* cuda_ipc_handle = nullptr;  // of GPU memory, where it is known
  bool may_change = false;          // another process can write it meanwhile; see DataChunk
};

// Methods may be called from any thread, but calls for one request are ordered: Send calls one
// after another, the one with `is_final` last, OnRequestReleased at most once, OnRequestGone last
// of all.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;

  // A response has been made, and its outputs follow.
  virtual void OnResponseCreated(const Request& /*request*/) {}

  // Where PlaceOutput would put an output, without placing it. `name` and `byte_size` are null
  // where they are not known yet; the sink may change the size. Nothing: it cannot say. Unless a
  // sink knows better, outputs lie in CPU memory.
  virtual base::Result<std::optional<memory::Placement>> PredictPlacement(
      const Request& /*request*/, const char* /*name*/, size_t* /*byte_size*/,
      memory::Placement /*preferred*/) {
    return std::optional(memory::Placement());
  }

  // Asked before an output's buffer is taken from the pool. Nothing means: use the pool.
  virtual base::Result<std::optional<OutputPlacement>> PlaceOutput(
      const Request& /*request*/, const ResponseOutput& /*output*/, size_t /*byte_size*/,
      memory::Placement /*preferred*/) {
    return std::optional<OutputPlacement>();
  }
  virtual void ReleasePlacement(const OutputPlacement& /*placement*/, size_t /*byte_size*/) {}

  // Takes one response. `response` may be null only with `is_final`: no more data follows.
  virtual void Send(ResponsePtr response, bool is_final) = 0;

  // The request was executed, as its model reports it; before it is released.
  virtual void OnExecuted(const ComputeTimes& /*times*/) {}

  // The request's inputs are no longer read by anybody.
  virtual void OnRequestReleased(Request& /*request*/) {}

  // The request and all of its responses are gone; the sink is not used again and may free itself.
  virtual void OnRequestGone() {}
};

}  // namespace nereid::core
