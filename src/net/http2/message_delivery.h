// SPDX-License-Identifier: Apache-2.0
// Passes messages from the connection to their calls. Most are delivered where they are received.
// Work that would delay the reactor's other connections is done by a worker: inflating, and
// handling a message that its call declares heavy. Each connection has at most one message at a
// worker, so that connections take turns there, too; its other such messages wait in line, and none
// leaves the line while messages in service exceed the connection's budget. A worker returns its
// result as an order (GrpcOrder::kReturn). Until then the call receives no other input, no
// cancellation and no end, and messages of its stream wait.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "http2/grpc_server.h"
#include "http2/grpc_stream.h"
#include "http2/receive_room.h"

namespace nereid::http2 {

// Confined to the holder of its connection. If a method returns an error, the caller must end the
// stream with it.
class MessageDelivery {
 public:
  // Both arguments outlive this object.
  MessageDelivery(const GrpcServerOptions& options, ReceiveRoom& room)
      : options_(options), room_(room) {}

  // Begins a turn of the reactor, which resets the limit for inflating within one.
  void BeginTurn() { inflated_bytes_ = 0; }
  // Called when a message is complete.
  std::optional<GrpcError> Deliver(GrpcStream& stream, MessageAssembler::Message&& message);
  // Called when the client sends no more; is_half_closed is set.
  void EndInput(GrpcStream& stream);
  // Delivers the messages that wait, and the half-close, as far as possible now.
  std::optional<GrpcError> Continue(GrpcStream& stream);
  // Called when a worker is done with a message of the stream, which may be closed by now.
  std::optional<GrpcError> TakeBack(GrpcStream& stream);
  // Called when the frontend is done with `bytes` of the stream's messages.
  void Credit(GrpcStream& stream, size_t bytes);
  // Called when the stream is closed: drops everything of it that waits.
  void Close(GrpcStream& stream);
  // Called before every stream is closed: workers get nothing more.
  void Stop() { line_.clear(); }

  bool has_waiting() const { return waiting_messages_ > 0; }

 private:
  // Puts a decompressed message before the messages that arrived after it.
  void PutFirst(GrpcStream& stream, net::BufferView plain);
  MessageAssembler::Message Take(GrpcStream& stream);
  // Returns whether the first message that waits needs a worker.
  bool NeedsWorker(GrpcStream& stream) const;
  bool IsSlowReader(const GrpcStream& stream) const;
  // Tells the call that the client sends no more, here or in order at a worker.
  void TellEnd(GrpcStream& stream);
  void StandInLine(GrpcStream& stream);
  // Gives the first message in the line to a worker, if possible.
  void MoveLine();
  void SendAway(GrpcStream& stream);

  const GrpcServerOptions& options_;
  ReceiveRoom& room_;
  size_t waiting_messages_ = 0;
  size_t waiting_bytes_ = 0;       // size of the messages that wait
  size_t inflated_bytes_ = 0;      // in this turn
  bool has_away_ = false;          // a worker has a message
  std::vector<GrpcStream*> line_;  // streams whose next message needs a worker
};

}  // namespace nereid::http2
