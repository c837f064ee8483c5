// SPDX-License-Identifier: Apache-2.0
// The protocol of one gRPC connection. Bytes come in through Receive and leave through Fill,
// without I/O and without reading a clock. It moves frames and events between nghttp2, the streams,
// the handler and these parts:
//
//   GrpcHeadReader     fields to heads
//   StreamHistory      which streams a client may still refer to
//   FrameForecast      where the bytes of large messages are received
//   MessageAssembler   bytes to messages (one for each stream)
//   MessageDelivery    messages to calls, here or on a worker
//   ReceiveRoom        how much the client may send
//   SendQueue          messages to frames (one for each stream)
//   Deadlines, Keepalive, Lifetime, FloodGuard   what is due by the clock
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <nghttp2/nghttp2.h>

#include "http2/call_host.h"
#include "http2/connection_watch.h"
#include "http2/deadlines.h"
#include "http2/flood_guard.h"
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
#include "http2/stream_history.h"

namespace nereid::http2 {

template <typename Owner>
struct SessionCallbacks;

// Confined to the holder of the connection. `now_ns` is base::NowNs, or a test's.
class GrpcSession {
 public:
  // All arguments outlive the session. Its output goes to `output`.
  GrpcSession(const GrpcServerOptions& options, GrpcHandler& handler, CallHost& host,
              Http2Output& output, uint64_t now_ns);
  ~GrpcSession();
  GrpcSession(const GrpcSession&) = delete;
  GrpcSession& operator=(const GrpcSession&) = delete;

  // Returns false if the connection cannot continue (the output of Fill should still be sent).
  bool Receive(const uint8_t* data, size_t size, uint64_t now_ns);
  // Plans a read of what comes next, ending with `rest`. Returns false if there is nothing to gain.
  bool PlanReceive(Http2Scatter& plan, std::span<std::byte> rest) const;
  // Processes the first `size` bytes of a read planned by PlanReceive, like Receive. REQUIRES:
  // nothing was received in between.
  bool ReceivePlanned(const Http2Scatter& plan, size_t size, uint64_t now_ns);
  // Executes the order of a message.
  void Apply(GrpcMessagePtr message);
  // Begins a turn of the reactor.
  void BeginTurn() { delivery_.BeginTurn(); }
  // Moves what may be sent into the output until that is full. Returns false if the connection
  // cannot continue.
  bool Fill();
  // Called after Fill's bytes were sent: processes requests that waited for a slow reader.
  void DeliverWaiting();
  // Returns whether nothing more will be received or sent.
  bool IsOver() const;

  // Does what is due at `now_ns`. Returns false if the client is gone or violates the protocol.
  bool Tick(uint64_t now_ns);
  // When Tick must run next, as far as this is known without running it.
  uint64_t next_due_ns() const { return next_due_ns_; }
  // Ends the calls for whose message too little arrived since the last time.
  void CheckProgress(const ProgressWindow& window);
  // Returns how many bytes wait to be sent.
  size_t unsent_bytes() const { return streams_.unsent_bytes(); }

  // Tells the client to disconnect; calls in progress continue.
  void StartDrain(uint64_t now_ns);
  // Reports the end of every call. Nothing but the destructor may follow.
  void CancelAll();

  // Whether the peer misbehaved: close as soon as the output of Fill is sent.
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
  // Ends the connection of a client that sends too many frames of a kind.
  void EndFlood();
  void OnStreamClosed(int32_t stream_id);
  bool Feed(const void* data, size_t size);
  void StartCall(GrpcStream& stream);
  void Assemble(GrpcStream& stream, const uint8_t* data, size_t size);
  void HalfClose(GrpcStream& stream);

  // Ending. RefuseHttp is for a request that is not gRPC.
  void RefuseHttp(GrpcStream& stream, int status);
  // For a request that is not even HTTP.
  void RefuseMalformed(GrpcStream& stream);
  // Ends the call with a status of the server itself.
  void Fail(GrpcStream& stream, GrpcStatus status, std::string_view text);
  void FailIf(GrpcStream& stream, const std::optional<GrpcError>& error) {
    if (error.has_value()) [[unlikely]]
      Fail(stream, error->status, error->text);
  }
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
  FloodGuard floods_;
  uint64_t now_ns_;
  uint64_t next_due_ns_ = 0;
  bool is_condemned_ = false;  // closed as soon as the reason has been sent
};

}  // namespace nereid::http2
