// SPDX-License-Identifier: Apache-2.0
// The interface of a connection to its calls and sessions.
#pragma once

#include <string>

#include "base/task_pool.h"
#include "http2/grpc_message.h"
#include "net/peer_identity.h"

namespace nereid::http2 {

// Implemented by GrpcConnection, and by the tests of the parts that need no socket.
class CallHost {
 public:
  // Executes message->order for the stream that it names, and takes one reference to the stream.
  // Any thread.
  virtual void Submit(GrpcMessagePtr message) = 0;
  // Keeps the host until the matching Release. Any thread.
  virtual void Hold() = 0;
  virtual void Release() = 0;
  // Whether the connection is among the last that the process can have. Constant.
  virtual bool is_crowded() const = 0;
  // See net::Connection. Any thread.
  virtual std::string PeerAddress() const { return {}; }
  virtual const net::PeerIdentity* peer_identity() const { return nullptr; }
  // Threads for work that would occupy a reactor too long.
  virtual base::TaskPool& workers() const = 0;

 protected:
  ~CallHost() = default;
};

}  // namespace nereid::http2
