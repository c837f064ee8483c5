// SPDX-License-Identifier: Apache-2.0
// The protocol side of one gRPC connection. Bytes come in through Receive and go out through Fill;
// no I/O here, and no clock is read. It moves frames and events between nghttp2, the streams, the
// handler and the parts that know what to do:
//
//   GrpcHeadReader     fields to heads
//   StreamHistory      which streams a client may still speak of
//   FrameForecast      where the bytes of large messages are received
//   MessageAssembler   bytes to messages (one for each stream)
//   MessageDelivery    messages to calls, here or on a worker
//   ReceiveRoom        how much the client may send
//   SendQueue          messages to frames (one for each stream)
//   Deadlines, Keepalive, Lifetime, ResetLimit   what is due by the clock
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <nghttp2/nghttp2.h>

#include "http2/call_host.h"
#include "http2/deadlines.h"
#include "http2/frame_forecast.h"
#include "http2/grpc_head_reader.h"
#include "http2/grpc_server.h"
#include "http2/grpc_stream.h"
#include "http2/http2_memory.h"
#include "http2/http2_output.h"
#include "http2/keepalive.h"
#include "http2/lifetime.h"
#include "http2/message_delivery.h"
#include "http2/receive_room.h"
#include "http2/reset_limit.h"
#include "http2/stream_history.h"

namespace nereid::http2 {

template <typename Owner>
struct SessionCallbacks;

// Confined to the holder of the connection. `now_ns` is base::NowNs, or a test's.
class GrpcSession {
 public:
  // All of these outlive it. What it has to send goes to `output`.
  GrpcSession(const GrpcServerOptions& options, GrpcHandler& handler, CallHost& host,
              Http2Output& output, uint64_t now_ns);
  ~GrpcSession();
  GrpcSession(const GrpcSession&) = delete;
  GrpcSession& operator=(const GrpcSession&) = delete;

  // False: the connection cannot go on (what Fill has should still be sent).
  bool Receive(const uint8_t* data, size_t size, uint64_t now_ns);
  // Lays out a read of what comes next, ending with `rest` if there is anything to it. False when
  // there is nothing to gain.
  bool PlanReceive(Http2Scatter& plan, std::span<std::byte> rest) const;
  // Takes in the first `size` bytes of a read laid out by PlanReceive, with nothing received since.
  // As Receive.
  bool ReceivePlanned(const Http2Scatter& plan, size_t size, uint64_t now_ns);
  // Carries out what a stream was told to do.
  void Apply(GrpcMessagePtr message);
  // A turn of the reactor begins.
  void BeginTurn() { delivery_.BeginTurn(); }
  // Moves what may be sent into the output until it is full. False: the connection cannot go on.
  bool Fill();
  // After Fill's bytes have left: lets requests in that waited for a slow reader.
  void DeliverWaiting();
  // Nothing more will be received or sent.
  bool IsOver() const;

  // Does what is due at `now_ns`. False: the client is gone or does not keep the rules.
  bool Tick(uint64_t now_ns);
  // When Tick wants to run next, as far as it is known without running it.
  uint64_t next_due_ns() const { return next_due_ns_; }
  // Ends the calls that brought too little of a message since the last time.
  void CheckProgress();

  // Tells the client to go away; calls under way go on.
  void StartDrain(uint64_t now_ns);
  // Reports the end of every call. Nothing but the destructor may follow.
  void CancelAll();

  // The peer misbehaved: close as soon as what Fill has is sent.
  bool is_condemned() const { return is_condemned_; }

 private:
  friend struct SessionCallbacks<GrpcSession>;

  GrpcStream* FindStream(int32_t stream_id) const;

  // Receiving.
  void OnBeginFrame(const nghttp2_frame_hd& head);
  int OnBeginHeaders(const nghttp2_frame& frame);
  void OnHeader(const nghttp2_frame& frame, nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  void OnFrame(const nghttp2_frame& frame);
  void OnHeadersOrData(const nghttp2_frame& frame);
  void OnData(int32_t stream_id, const uint8_t* data, size_t size);
  void OnPing(bool is_ack);
  void OnStreamClosed(int32_t stream_id);
  bool Feed(const void* data, size_t size);
  void StartCall(GrpcStream& stream);
  void Assemble(GrpcStream& stream, const uint8_t* data, size_t size);
  void HalfClose(GrpcStream& stream);
  // Gives the client the room that it may have.
  void Replenish();

  // Ending.
  // For a request that is not gRPC.
  void RefuseHttp(GrpcStream& stream, int status);
  // For one that is not even HTTP.
  void RefuseMalformed(GrpcStream& stream);
  // Ends the call from this side with a status of the server's own.
  void Fail(GrpcStream& stream, GrpcStatus status, std::string_view text);
  void FailIf(GrpcStream& stream, const std::optional<GrpcError>& error) {
    if (error.has_value()) [[unlikely]]
      Fail(stream, error->status, error->text);
  }
  void SubmitReset(const GrpcStream& stream, uint32_t code);
  void AnnounceDrain();
  void ConfirmDrain();

  // Sending.
  void Respond(GrpcStream& stream);
  ssize_t OnReadData(GrpcStream& stream, size_t limit, uint32_t* flags);
  int OnSendData(GrpcStream& stream, const uint8_t* frame_head, size_t length);
  void OnFrameSent(const nghttp2_frame& frame);

  const GrpcServerOptions& options_;
  GrpcHandler& handler_;
  CallHost& host_;
  Http2Output& output_;
  Http2Memory memory_;
  GrpcHeadReader heads_;
  nghttp2_session* session_ = nullptr;
  StreamList streams_;
  StreamHistory history_;
  FrameForecast forecast_;
  ReceiveRoom room_;
  IncompleteMessages incomplete_;
  MessageDelivery delivery_;
  Deadlines deadlines_;
  Keepalive keepalive_;
  Lifetime lifetime_;
  ResetLimit resets_;
  uint64_t now_ns_;
  uint64_t next_due_ns_ = 0;
  bool is_condemned_ = false;  // closed as soon as the reason has been sent
};

}  // namespace nereid::http2
