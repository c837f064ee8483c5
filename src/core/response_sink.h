// SPDX-License-Identifier: Apache-2.0
// The receiver of one request's responses. Implemented by each frontend, the C API and the
// ensemble.
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
// Returns a response to its pool.
struct ResponseDeleter {
  void operator()(Response* response) const;
};
using ResponsePtr = std::unique_ptr<Response, ResponseDeleter>;

// A buffer that the client provided for an output (shared memory, the C API's allocator). Its data
// is null only where the output has no bytes.
struct OutputPlacement {
  std::byte* data;
  memory::Placement where;
  void* owner = nullptr;            // passed to ReleasePlacement
  void* cuda_ipc_handle = nullptr;  // of GPU memory, if known
  bool may_change = false;          // another process can change it at any time; see DataChunk
};

// Receives the responses of requests. Methods may be called from any thread, but calls for one
// request are ordered: Send calls one after another, the one with `is_final` last,
// OnRequestReleased at most once, OnAbandoned when no other follows (and once also from within
// a call of Send that keeps its response), OnRequestGone last of all.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;

  // Called when a response was made, before its outputs.
  virtual void OnResponseCreated(const Request& /*request*/) {}

  // Returns where PlaceOutput would place an output, without placing it, or nothing if that is
  // unknown. `name` and `byte_size` are null if they are not known yet; the sink may change the
  // size. By default, outputs are in CPU memory.
  virtual base::Result<std::optional<memory::Placement>> PredictPlacement(
      const Request& /*request*/, const char* /*name*/, size_t* /*byte_size*/,
      memory::Placement /*preferred*/) {
    return std::optional(memory::Placement());
  }

  // Called before an output's buffer is taken from the pool. Returning nothing means: use the pool.
  virtual base::Result<std::optional<OutputPlacement>> PlaceOutput(
      const Request& /*request*/, const ResponseOutput& /*output*/, size_t /*byte_size*/,
      memory::Placement /*preferred*/) {
    return std::optional<OutputPlacement>();
  }
  virtual void ReleasePlacement(const OutputPlacement& /*placement*/, size_t /*byte_size*/) {}

  // Whether Send might make its thread wait now, for instance for a client that reads slowly. A
  // thread that serves others, too, leaves such a Send to another one. Thread-safe.
  virtual bool WouldWait() { return false; }
  // Waits for that, unless the calling thread must not (base/no_wait.h). Called by what produces
  // the responses to `request`, the sink's own, if others send them.
  virtual void AwaitRoom(const Request& /*request*/) {}

  // Takes one response. `response` may be null only with `is_final`: no more data follows.
  virtual void Send(ResponsePtr response, bool is_final) = 0;

  // Called when a KeptResponse of the sink is all that still refers to the request: no last
  // response comes. The sink drops it.
  virtual void OnAbandoned() {}

  // Called with the times that the model reports after execution, before the request is released.
  virtual void OnExecuted(const ComputeTimes& /*times*/) {}
  // Called in the place of OnExecuted if the model reports that the execution has failed.
  virtual void OnExecutionFailed() {}

  // Called when the request's inputs are not read any more.
  virtual void OnRequestReleased(Request& /*request*/) {}

  // Called when the request and all of its responses are gone. The sink is not used again and may
  // delete itself.
  virtual void OnRequestGone() {}
};

}  // namespace nereid::core
