// SPDX-License-Identifier: Apache-2.0
// The protocol side of one gRPC connection: HTTP/2 by nghttp2, calls, messages, flow control,
// deadlines and keep-alive. Bytes come in through Receive and go out through Fill; no I/O here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "http2/grpc_server.h"
#include "http2/http2_memory.h"
#include "http2/http2_output.h"
#include "http2/http2_scatter.h"
#include "net/compression.h"

namespace nereid::http2 {

inline constexpr uint64_t kNever = UINT64_MAX;

// Confined to the holder of the connection.
class GrpcSession {
 public:
  // `options`, `handler` and `connection` outlive it.
  GrpcSession(const GrpcServerOptions& options, GrpcHandler& handler, GrpcConnection& connection,
              net::Reactor& reactor);
  ~GrpcSession();
  GrpcSession(const GrpcSession&) = delete;
  GrpcSession& operator=(const GrpcSession&) = delete;

  // False: the connection cannot go on (what Fill has should still be sent).
  bool Receive(const uint8_t* data, size_t size);
  // Lays out a read of what comes next, ending with `rest` if there is anything to it. False when
  // there is nothing to gain.
  bool PlanReceive(Http2Scatter& plan, std::span<std::byte> rest) const;
  // Takes in the first `size` bytes of a read laid out by PlanReceive, with nothing received since.
  // As Receive.
  bool ReceivePlanned(const Http2Scatter& plan, size_t size);
  // Carries out what a call was told to do.
  void Apply(GrpcMessagePtr order);
  // A turn of the reactor begins: its share of what may be done in one is fresh.
  void BeginTurn() { inflated_bytes_ = 0; }
  // A worker is through with a message of a call whose session is over.
  static void EndAway(GrpcCall& call);
  // Moves what may be sent into `output` until it is full. False: the connection cannot go on.
  bool Fill(Http2Output& output);
  // After Fill's bytes have left: lets requests in that waited for a slow reader.
  void DeliverWaiting();
  // Nothing more will be received or sent.
  bool IsOver() const;

  // Does what is due at `now_ns`; returns when something will be next. Sets *dead when the peer
  // does not answer pings.
  uint64_t Tick(uint64_t now_ns, bool* dead);
  // Ends the calls that brought too little of a message since the last time.
  void CheckProgress();
  // When Tick wants to run next, as far as it is known without running it.
  uint64_t next_due_ns() const { return next_due_ns_; }

  // Tells the client to go away; calls under way go on.
  void StartDrain();
  // Reports the end of every call. Nothing but the destructor may follow.
  void CancelAll();

  size_t open_calls() const { return open_calls_; }
  // The peer misbehaved: close as soon as what Fill has is sent.
  bool is_condemned() const { return is_condemned_; }

 private:
  struct Deadline {
    uint64_t at_ns;
    int32_t stream_id;
    bool operator<(const Deadline& other) const { return at_ns > other.at_ns; }  // earliest on top
  };

  static nghttp2_session_callbacks* MakeCallbacks();
  static void SetReceiveCallbacks(nghttp2_session_callbacks* callbacks);
  static void SetSendCallbacks(nghttp2_session_callbacks* callbacks);

  GrpcCall* FindCall(int32_t stream_id) const;
  void OnBeginFrame(const nghttp2_frame_hd& head);
  // A client must begin streams in their order, and send nothing for those that it has ended.
  void CheckStream(const nghttp2_frame_hd& frame);
  // In begun_ and ended_; 0 for those that are not remembered.
  uint64_t StreamBit(int32_t stream_id) const;
  int OnBeginHeaders(const nghttp2_frame& frame);
  void OnHeader(const nghttp2_frame& frame, nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  int OnFrame(const nghttp2_frame& frame);
  int OnData(int32_t stream_id, const uint8_t* data, size_t size);
  void OnFrameSent(const nghttp2_frame& frame);
  void OnStreamClosed(int32_t stream_id);
  void OnPing();
  void OnReset();

  void StartCall(GrpcCall& call);
  // For a request that is not gRPC.
  void RefuseHttp(GrpcCall& call, int status);
  // For one that is not even HTTP.
  void RefuseMalformed(GrpcCall& call);
  void HalfClose(GrpcCall& call);

  void NoteReceived();
  bool Feed(const void* data, size_t size);
  bool IsAsPlanned(const Http2Scatter& plan, size_t frame) const;
  bool FeedRest(const Http2Scatter& plan, size_t part, size_t size);
  void ReceiveMessageBytes(GrpcCall& call, const uint8_t* data, size_t size);
  bool StartMessage(GrpcCall& call);
  void FinishMessage(GrpcCall& call);
  void Deliver(GrpcCall& call, base::BufferRef buffer, std::string_view message,
               bool is_compressed);
  static bool HasWaiting(const GrpcCall& call);
  GrpcCall::Waiting TakeWaiting(GrpcCall& call);
  void DropWaiting(GrpcCall& call);
  void PutFirst(GrpcCall& call, net::BufferView plain);
  bool NeedsWorker(GrpcCall& call);
  // Hands over the messages that wait, and the half-close, as far as they may go now.
  void Continue(GrpcCall& call);
  void EndInput(GrpcCall& call);
  void StandInLine(GrpcCall& call);
  // Gives the first in the line to a worker, when it may have it.
  void MoveLine();
  void SendAway(GrpcCall& call);
  void ApplyReturn(GrpcCall& call, GrpcMessage& order);
  void DropIncomplete(GrpcCall& call);

  // Ends the call from this side with a status of the server's own.
  void Fail(GrpcCall& call, GrpcStatus status, std::string_view text);
  static void ReportCancel(GrpcCall& call);
  void Expire(GrpcCall& call);
  void Respond(GrpcCall& call);
  void SubmitTrailers(GrpcCall& call);
  ssize_t OnReadData(GrpcCall& call, size_t limit, uint32_t* flags);
  int OnSendData(GrpcCall& call, const uint8_t* frame_head, size_t length);
  void PopSent(GrpcCall& call);
  void ReleaseHeld(GrpcCall& call, size_t bytes);
  void Replenish();
  void AddDeadline(GrpcCall& call);
  uint64_t TickDeadlines(uint64_t now_ns);
  uint64_t TickKeepalive(uint64_t now_ns, bool* dead);
  uint64_t TickAge(uint64_t now_ns, bool* dead);

  const GrpcServerOptions& options_;
  GrpcHandler& handler_;
  GrpcConnection& connection_;
  net::Reactor& reactor_;
  Http2Memory memory_;
  GrpcHeadReader heads_;
  bool has_bad_trailers_ = false;  // in the block that is being read
  nghttp2_session* session_ = nullptr;
  Http2Output* output_ = nullptr;  // during Fill

  // The DATA frame under way, if it has no padding.
  int32_t frame_stream_ = 0;
  size_t frame_bytes_ = 0;
  size_t frame_left_ = 0;
  int plans_to_skip_ = 0;  // since frames did not come as foretold

  // Of the last streams, the newest in the lowest bit: which the client has begun, and which it has
  // ended. It must not send any more for those.
  static constexpr int32_t kRememberedStreams = 64;
  int32_t newest_stream_ = -1;
  uint64_t begun_ = 0;
  uint64_t ended_ = 0;

  GrpcCall* calls_ = nullptr;   // open streams
  GrpcCall* latest_ = nullptr;  // of them, the one whose client began last
  size_t open_calls_ = 0;
  size_t waiting_messages_ = 0;
  size_t waiting_bytes_ = 0;     // of them
  size_t inflated_bytes_ = 0;    // in this turn
  bool has_away_ = false;        // a worker has a message
  std::vector<int32_t> line_;    // streams whose next message a worker is to have
  bool held_room_back_ = false;  // since CheckProgress
  size_t held_bytes_ = 0;        // of messages delivered and not credited
  size_t incomplete_bytes_ = 0;  // declared, of messages not yet complete
  size_t incomplete_messages_ = 0;
  size_t unconsumed_bytes_ = 0;  // received, for which the client was not given room yet

  std::vector<Deadline> deadlines_;  // a heap
  uint64_t now_ns_ = 0;
  uint64_t next_due_ns_ = 0;
  const uint64_t opened_ns_;
  bool got_settings_ = false;
  bool is_condemned_ = false;  // closed as soon as the reason has been sent
  bool is_draining_ = false;
  bool drain_confirmed_ = false;
  uint64_t drain_started_ns_ = 0;

  uint64_t last_received_ns_ = 0;
  uint64_t ping_sent_ns_ = 0;  // 0: no keep-alive ping is unanswered
  int pings_since_data_ = 0;
  uint64_t last_ping_received_ns_ = 0;
  int ping_strikes_ = 0;
  double reset_tokens_ = 0;
  uint64_t reset_tokens_ns_ = 0;
};

}  // namespace nereid::http2
