// SPDX-License-Identifier: Apache-2.0
// What calls and sessions need of the connection that they belong to.
#pragma once

#include "base/task_pool.h"
#include "http2/grpc_message.h"

namespace nereid::http2 {

// Implemented by GrpcConnection, and by the tests of the parts that need no socket.
class CallHost {
 public:
  // From any thread: has the stream that message->order names do what it says. Takes one reference
  // to the stream.
  virtual void Submit(GrpcMessagePtr message) = 0;
  // Keeps the host until the matching Release. From any thread.
  virtual void Hold() = 0;
  virtual void Release() = 0;
  // Whether the connection is among the last that the process can have. Constant.
  virtual bool is_crowded() const = 0;
  // Threads for what would keep a reactor too long.
  virtual base::TaskPool& workers() const = 0;

 protected:
  ~CallHost() = default;
};

}  // namespace nereid::http2
