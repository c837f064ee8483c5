// SPDX-License-Identifier: Apache-2.0
// Messages on their way from the connection to their calls. Most are handed over where they are
// received. What would keep the reactor from its other connections is done by a worker: inflating,
// and taking in a message that its call says is heavy. Of each connection one message at a time is
// with a worker, so that connections have their turns there, too; its other such messages stand in
// line, and none leaves the line while messages in service exceed the connection's budget. A worker
// brings back what it did as an order (GrpcOrder::kReturn). Until then the call hears nothing else
// of its input, its cancellation or its end, and messages of its stream wait.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "http2/grpc_server.h"
#include "http2/grpc_stream.h"
#include "http2/receive_room.h"

namespace nereid::http2 {

// Confined to the holder of its connection. Methods that return an error leave it to the caller to
// end the stream with it.
class MessageDelivery {
 public:
  // Both outlive it.
  MessageDelivery(const GrpcServerOptions& options, ReceiveRoom& room)
      : options_(options), room_(room) {}

  // A turn of the reactor begins: its share of what may be inflated in one is fresh.
  void BeginTurn() { inflated_bytes_ = 0; }
  // A message is complete.
  std::optional<GrpcError> Deliver(GrpcStream& stream, MessageAssembler::Message&& message);
  // The client sends nothing more; is_half_closed is set.
  void EndInput(GrpcStream& stream);
  // Hands over the messages that wait, and the half-close, as far as they may go now.
  std::optional<GrpcError> Continue(GrpcStream& stream);
  // A worker is through with what it had of the stream, which may be closed by now.
  std::optional<GrpcError> TakeBack(GrpcStream& stream);
  // The frontend is through with `bytes` of the stream's messages.
  void Credit(GrpcStream& stream, size_t bytes);
  // The stream is closed: nothing of it waits any more.
  void Close(GrpcStream& stream);
  // Every stream is about to be closed: no worker is to be given anything.
  void Stop() { line_.clear(); }

  bool has_waiting() const { return waiting_messages_ > 0; }

 private:
  // What became of a compressed message comes before what arrived behind it.
  void PutFirst(GrpcStream& stream, net::BufferView plain);
  MessageAssembler::Message Take(GrpcStream& stream);
  // Whether a worker is to have the first message that waits.
  bool NeedsWorker(GrpcStream& stream) const;
  bool IsSlowReader(const GrpcStream& stream) const;
  // Tells the call that the client sends nothing more, here or in its turn at a worker.
  void TellEnd(GrpcStream& stream);
  void StandInLine(GrpcStream& stream);
  // Gives the first in the line to a worker, when it may have it.
  void MoveLine();
  void SendAway(GrpcStream& stream);

  const GrpcServerOptions& options_;
  ReceiveRoom& room_;
  size_t waiting_messages_ = 0;
  size_t waiting_bytes_ = 0;       // of them
  size_t inflated_bytes_ = 0;      // in this turn
  bool has_away_ = false;          // a worker has a message
  std::vector<GrpcStream*> line_;  // whose next message a worker is to have
};

}  // namespace nereid::http2
