// SPDX-License-Identifier: Apache-2.0
// nghttp2 calls the methods that begin with On: those for receiving inside
// nghttp2_session_mem_recv, which allows submitting frames but not sending them, and those for
// sending inside nghttp2_session_mem_send. Orders of handlers wait in the connection's outbox
// meanwhile.
#include "http2/grpc_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/object_pool.h"
#include "http2/grpc_wire.h"
#include "http2/nanoseconds.h"
#include "http2/response_head.h"
#include "http2/session_callbacks.h"

namespace nereid::http2 {
namespace {

// A stream's window is updated after this many received bytes.
constexpr size_t kStreamStep = size_t{1} << 20;
// How long a client may take to close a stream after its response.
constexpr uint64_t kHalfOpenNs = 1'000'000'000;

void SubmitReset(nghttp2_session* session, const GrpcStream& stream, uint32_t code) {
  nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream.id, code);
}

// Resets a stream whose response came before the end of its request, unless `deadlines` is to call
// this again. Most clients close the stream first. The reset, which tells others to send no more,
// does not come with the response, because HAProxy (2.6) passes on a reset that it reads together
// with trailers in place of them: clients would see CANCELLED and not the status.
void EndHalfOpen(nghttp2_session* session, GrpcStream& stream, uint64_t now_ns,
                 Deadlines& deadlines) {
  if (nghttp2_session_get_stream_local_close(session, stream.id) != 1) return;
  if (stream.is_reset_next) return SubmitReset(session, stream, NGHTTP2_NO_ERROR);
  stream.is_reset_next = true;
  deadlines.Add(now_ns + kHalfOpenNs, stream.id);
}

}  // namespace

GrpcSession::GrpcSession(const GrpcServerOptions& options, GrpcHandler& handler, CallHost& host,
                         Http2Output& output, uint64_t now_ns)
    : options_(options),
      handler_(handler),
      host_(host),
      output_(output),
      heads_(options.max_header_list_bytes),
      room_(options.connection_budget_bytes),
      incomplete_{options.max_message_bytes, options.max_incomplete_bytes, options.received_bytes},
      delivery_(options, room_),
      keepalive_(options, now_ns),
      lifetime_(options, now_ns),
      floods_(options, now_ns),
      now_ns_(now_ns) {
  session_ = CreateServerSession(options, SessionCallbacks<GrpcSession>::Make().get(), this,
                                 memory_.interface());
}

GrpcSession::~GrpcSession() { nghttp2_session_del(session_); }

GrpcStream* GrpcSession::FindStream(int32_t stream_id) const {
  // The next event is mostly for the same stream.
  if (GrpcStream* const latest = streams_.latest(); latest != nullptr && latest->id == stream_id) {
    return latest;
  }
  return static_cast<GrpcStream*>(nghttp2_session_get_stream_user_data(session_, stream_id));
}

bool GrpcSession::Receive(const uint8_t* data, size_t size, uint64_t now_ns) {
  now_ns_ = now_ns;
  keepalive_.NoteReceived(now_ns);
  return Feed(data, size);
}

bool GrpcSession::PlanReceive(Http2Scatter& plan, std::span<std::byte> rest) const {
  const int32_t stream_id = forecast_.stream_id();
  if (stream_id == 0) return false;
  const GrpcStream* const stream = FindStream(stream_id);
  if (stream == nullptr || stream->ignores_input()) return false;
  const MessageAssembler& assembler = stream->assembler;
  return forecast_.Plan(assembler.buffer(), assembler.Room(), rest, plan);
}

bool GrpcSession::ReceivePlanned(const Http2Scatter& plan, size_t size, uint64_t now_ns) {
  now_ns_ = now_ns;
  keepalive_.NoteReceived(now_ns);
  return forecast_.Replay(plan, size,
                          [this](const void* data, size_t bytes) { return Feed(data, bytes); });
}

bool GrpcSession::Feed(const void* data, size_t size) {
  return nghttp2_session_mem_recv(session_, static_cast<const uint8_t*>(data), size) >= 0;
}

void GrpcSession::EndFlood() {
  nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
  is_condemned_ = true;
}

void GrpcSession::OnBeginFrame(const nghttp2_frame_hd& head) {
  if (!floods_.OnFrame(head, now_ns_)) [[unlikely]]
    return EndFlood();
  const bool is_plain_data = head.type == NGHTTP2_DATA && !(head.flags & NGHTTP2_FLAG_PADDED);
  forecast_.OnFrame(head.stream_id, is_plain_data ? head.length : 0);
  if (head.type != NGHTTP2_HEADERS || head.stream_id % 2 == 0) return;
  if (history_.Begin(head.stream_id) || FindStream(head.stream_id) != nullptr) return;
  switch (history_.Judge(head.stream_id)) {
    case StreamHistory::Verdict::kFine:
      return;
    case StreamHistory::Verdict::kBadOrder:
      nghttp2_session_terminate_session(session_, NGHTTP2_PROTOCOL_ERROR);
      return;
    case StreamHistory::Verdict::kEnded:
      nghttp2_session_terminate_session(session_, NGHTTP2_STREAM_CLOSED);
      return;
  }
}

int GrpcSession::OnBeginHeaders(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS) return 0;
  if (frame.headers.cat != NGHTTP2_HCAT_REQUEST) {
    heads_.BeginTrailers();
    return 0;
  }
  heads_.Begin();
  GrpcStream* const stream = base::ObjectPool<GrpcStream>::Take();
  stream->Begin(host_, frame.hd.stream_id, now_ns_);
  streams_.Add(*stream);
  return nghttp2_session_set_stream_user_data(session_, frame.hd.stream_id, stream);
}

void GrpcSession::OnHeader(const nghttp2_frame& frame, nghttp2_rcbuf* name, nghttp2_rcbuf* value) {
  if (frame.hd.type != NGHTTP2_HEADERS) return;
  if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) return heads_.Add(name, value);
  heads_.AddTrailer(name, value);
}

void GrpcSession::OnFrame(const nghttp2_frame& frame) {
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      return OnHeadersOrData(frame);
    case NGHTTP2_SETTINGS:
      return lifetime_.NoteSettings();
    case NGHTTP2_RST_STREAM:
      if (!floods_.OnReset(now_ns_)) EndFlood();
      return;
    case NGHTTP2_PING:
      return OnPing(frame.hd.flags & NGHTTP2_FLAG_ACK);
    default:
      return;
  }
}

void GrpcSession::OnHeadersOrData(const nghttp2_frame& frame) {
  GrpcStream* const stream = FindStream(frame.hd.stream_id);
  if (stream == nullptr) return;
  const bool is_end = frame.hd.flags & NGHTTP2_FLAG_END_STREAM;
  if (frame.hd.type == NGHTTP2_HEADERS) {
    if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
      StartCall(*stream);
    } else if (!is_end || heads_.has_bad_trailers()) {
      RefuseMalformed(*stream);
    }
  }
  if (is_end) HalfClose(*stream);
}

void GrpcSession::StartCall(GrpcStream& stream) {
  stream.SetHead(heads_.End());
  const GrpcHead* const head = stream.head();
  if (head == nullptr) return RefuseMalformed(stream);
  if (heads_.is_too_large()) {
    return Fail(stream, GrpcStatus::kResourceExhausted, "received metadata size exceeds limit");
  }
  if (!head->is_post()) return RefuseHttp(stream, 405);
  if (!head->has_grpc_type()) return RefuseHttp(stream, 415);
  if (!head->encoding().has_value()) {
    return Fail(stream, GrpcStatus::kUnimplemented,
                fmt::format("Compression algorithm '{}' is not supported; supported are identity, "
                            "deflate, gzip",
                            head->Find("grpc-encoding")));
  }
  stream.assembler.Begin(incomplete_, *head->encoding() != net::Compression::kIdentity);
  if (options_.response_compression != GrpcCompressionLevel::kNone) {
    stream.SetResponseEncoding(head->accepted());
  }
  stream.content_left = head->content_length();
  if (const auto timeout = heads_.timeout()) {
    stream.SetDeadline(base::TimePoint(base::nanoseconds(now_ns_)) + *timeout);
    deadlines_.Prune(streams_.size(), [this](int32_t id) { return FindStream(id) != nullptr; });
    deadlines_.Add(Ns(*stream.deadline()), stream.id);
    next_due_ns_ = std::min(next_due_ns_, deadlines_.next_ns());
  }
  stream.events = handler_.OnCall(GrpcCallRef(stream));
  stream.is_rejected = stream.events == nullptr;
  if (lifetime_.is_draining() && stream.events != nullptr) stream.events->OnDrain();
}

void GrpcSession::OnData(int32_t stream_id, const uint8_t* data, size_t size) {
  room_.NoteReceived(size);
  forecast_.OnData(size);
  GrpcStream* const stream = FindStream(stream_id);
  if (stream == nullptr) return;
  if (stream->content_left >= 0) {
    stream->content_left -= static_cast<int64_t>(size);
    if (stream->content_left < 0) RefuseMalformed(*stream);
  }
  // The stream's window is so large that it need not be accounted for with every message.
  stream->unconsumed += size;
  if (stream->unconsumed >= kStreamStep) {
    nghttp2_session_consume_stream(session_, stream_id, std::exchange(stream->unconsumed, 0));
  }
  Assemble(*stream, data, size);
}

void GrpcSession::Assemble(GrpcStream& stream, const uint8_t* data, size_t size) {
  while (size > 0 && !stream.ignores_input()) {
    const size_t taken = stream.assembler.Take(data, size);
    data += taken;
    size -= taken;
    switch (stream.assembler.state()) {
      case MessageAssembler::State::kIncomplete:
        break;
      case MessageAssembler::State::kComplete:
        FailIf(stream, delivery_.Deliver(stream, stream.assembler.TakeMessage()));
        break;
      case MessageAssembler::State::kRefused:
        return FailIf(stream, stream.assembler.error());
    }
  }
}

void GrpcSession::HalfClose(GrpcStream& stream) {
  stream.input.is_half_closed = true;
  history_.End(stream.id);
  if (stream.ignores_input()) return;
  if (stream.content_left > 0) return RefuseMalformed(stream);
  if (stream.assembler.is_within_message()) {
    return Fail(stream, GrpcStatus::kInternal, "The client half-closed within a message");
  }
  delivery_.EndInput(stream);
}

void GrpcSession::OnPing(bool is_ack) {
  if (is_ack) {
    if (lifetime_.ConfirmDrain()) ConfirmDrain();
    return;
  }
  if (keepalive_.OnPing(now_ns_, !streams_.empty())) return;
  constexpr std::string_view kReason = "too_many_pings";  // the text that gRPC clients look for
  nghttp2_submit_goaway(
      session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
      NGHTTP2_ENHANCE_YOUR_CALM, reinterpret_cast<const uint8_t*>(kReason.data()), kReason.size());
  is_condemned_ = true;
}

void GrpcSession::OnStreamClosed(int32_t stream_id) {
  GrpcStream* const stream = FindStream(stream_id);
  if (stream == nullptr) return;
  stream->is_closed = true;
  stream->assembler.Drop();
  const bool is_complete = stream->is_finished && stream->output.empty();
  stream->output.Drop(output_);
  if (stream->events != nullptr && !is_complete) stream->ReportCancel();
  delivery_.Close(*stream);
  stream->ReportDone();
  streams_.Remove(*stream);
  stream->Unreference();
}

void GrpcSession::CancelAll() {
  delivery_.Stop();
  while (GrpcStream* const stream = streams_.first()) {
    const int32_t stream_id = stream->id;
    OnStreamClosed(stream_id);
    nghttp2_session_set_stream_user_data(session_, stream_id, nullptr);
  }
}

void GrpcSession::RefuseMalformed(GrpcStream& stream) {
  if (stream.ignores_input()) return;
  stream.is_rejected = true;
  stream.is_finished = true;
  stream.ReportCancel();
  stream.assembler.Drop();
  SubmitReset(session_, stream, NGHTTP2_PROTOCOL_ERROR);
}

void GrpcSession::RefuseHttp(GrpcStream& stream, int status) {
  stream.is_rejected = true;
  stream.is_finished = true;
  stream.has_response = true;
  SubmitHttpStatus(session_, stream.id, status);
}

void GrpcSession::Fail(GrpcStream& stream, GrpcStatus status, std::string_view text) {
  if (stream.is_finished || stream.is_closed) return;
  stream.is_finished = true;
  stream.status_code = static_cast<int>(status);
  stream.status_text = text;
  stream.ReportCancel();
  stream.assembler.Drop();
  // Trailers now would leave the client with a truncated message, or in wait for the rest of a
  // frame that nghttp2 keeps on hold; it sends the reset after that.
  if (stream.output.is_begun()) return SubmitReset(session_, stream, NGHTTP2_CANCEL);
  stream.output.Drop(output_);
  stream.unsent().Clear();
  Respond(stream);
}

void GrpcSession::Apply(GrpcMessagePtr message) {
  GrpcOrder& order = message->order;
  GrpcStream& stream = *order.stream;
  const uint8_t kinds = order.kinds;
  if (kinds & GrpcOrder::kReturn) FailIf(stream, delivery_.TakeBack(stream));
  if (stream.is_closed) return;
  if (kinds & GrpcOrder::kCredit) delivery_.Credit(stream, order.credit);
  if (stream.is_finished) return;
  if (kinds & GrpcOrder::kAbort) {
    return Fail(stream, static_cast<GrpcStatus>(order.status_code), order.status_text);
  }
  if (kinds & GrpcOrder::kFinish) {
    stream.SetEnd(order);
  }
  if (kinds & GrpcOrder::kSend) stream.output.Push(std::move(message));
  if (kinds & (GrpcOrder::kSend | GrpcOrder::kFinish)) Respond(stream);
}

void GrpcSession::Respond(GrpcStream& stream) {
  if (stream.has_response) {
    nghttp2_session_resume_data(session_, stream.id);
    return;
  }
  stream.has_response = true;
  int result;
  if (stream.is_finished && stream.output.empty()) {
    result = SubmitStatus(session_, stream.id, stream.status_code, stream.status_text,
                          stream.trailers.get());
  } else {
    nghttp2_data_provider provider;
    provider.source.ptr = &stream;
    provider.read_callback = &SessionCallbacks<GrpcSession>::ReadData;
    result = SubmitHead(session_, stream.id, stream.response_encoding(), provider);
  }
  if (result != 0) SubmitReset(session_, stream, NGHTTP2_INTERNAL_ERROR);
}

ssize_t GrpcSession::OnReadData(GrpcStream& stream, size_t limit, uint32_t* flags) {
  const size_t queued = stream.output.bytes();
  if (queued == 0 && !stream.is_finished) return NGHTTP2_ERR_DEFERRED;
  const size_t length = stream.output.Promise(limit);
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (stream.is_finished && length == queued) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    SubmitTrailers(session_, stream.id, stream.status_code, stream.status_text,
                   stream.trailers.get());
  }
  return static_cast<ssize_t>(length);
}

int GrpcSession::OnSendData(GrpcStream& stream, const uint8_t* frame_head, size_t length) {
  if (output_.full()) return NGHTTP2_ERR_WOULDBLOCK;  // asked again, for the same bytes
  keepalive_.NoteSent();
  const bool has_head = output_.Copy(frame_head, Http2Scatter::kFrameHeadBytes);
  const SendQueue::Framed framed = stream.output.Frame(length, output_, stream.unsent());
  if (framed.is_wanted && stream.events != nullptr) [[unlikely]]
    stream.events->OnSent();
  return has_head && framed.is_ok ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

void GrpcSession::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS) return;
  keepalive_.NoteSent();
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) &&
      nghttp2_session_get_stream_remote_close(session_, frame.hd.stream_id) == 0) {
    // For EndHalfOpen. The clock was read when bytes last came, so the wait begins with the next
    // Tick.
    deadlines_.Add(now_ns_, frame.hd.stream_id);
    next_due_ns_ = now_ns_;
  }
}

bool GrpcSession::Fill() {
  // Grants the client the window that it may have. Not only bytes that arrive change it, but also
  // the end of a call, which is mostly part of the Fill before.
  const size_t received = room_.Take();
  if (received > 0) nghttp2_session_consume_connection(session_, received);
  while (!output_.full()) {
    const uint8_t* data = nullptr;
    const ssize_t n = nghttp2_session_mem_send(session_, &data);
    if (n == 0) break;
    if (n < 0 || !output_.Copy(data, static_cast<size_t>(n))) return false;
  }
  return true;
}

void GrpcSession::DeliverWaiting() {
  if (!delivery_.has_waiting()) return;
  for (GrpcStream* stream = streams_.first(); stream != nullptr; stream = stream->links.next) {
    if (!stream->input.empty()) FailIf(*stream, delivery_.Continue(*stream));
  }
}

bool GrpcSession::IsOver() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

bool GrpcSession::Tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  while (const std::optional<int32_t> stream_id = deadlines_.TakeDue(now_ns)) {
    GrpcStream* const stream = FindStream(*stream_id);
    if (stream == nullptr) continue;
    if (stream->is_finished) {
      EndHalfOpen(session_, *stream, now_ns_, deadlines_);
    } else {
      Fail(*stream, GrpcStatus::kDeadlineExceeded, "Deadline Exceeded");
    }
  }
  const Keepalive::Decision ping = keepalive_.Check(now_ns, !streams_.empty());
  if (ping.verdict == Keepalive::Verdict::kPing) {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  }
  const Lifetime::Decision age = lifetime_.Check(now_ns);
  if (age.starts_drain) AnnounceDrain();
  if (age.confirms_drain) ConfirmDrain();
  next_due_ns_ = std::min({deadlines_.next_ns(), ping.next_ns, age.next_ns});
  return ping.verdict != Keepalive::Verdict::kDead && !age.is_dead;
}

// A client that had no window to send cannot be blamed.
void GrpcSession::CheckProgress(const ProgressWindow& window) {
  const bool is_fair = !room_.TakeHeldBack();
  if (incomplete_.count == 0) return;
  for (GrpcStream* stream = streams_.first(); stream != nullptr; stream = stream->links.next) {
    const std::optional<size_t> bytes = stream->assembler.Progress(is_fair);
    if (!bytes.has_value() || *bytes >= window.min_bytes) continue;
    Fail(*stream, GrpcStatus::kDeadlineExceeded,
         fmt::format("The message is arriving too slowly ({} of its {} bytes in {} ms)", *bytes,
                     stream->assembler.message_size(), window.length_ms));
  }
}

void GrpcSession::StartDrain(uint64_t now_ns) {
  if (!lifetime_.StartDrain(now_ns)) return;
  next_due_ns_ = std::min(next_due_ns_, lifetime_.drain_due_ns());
  AnnounceDrain();
}

void GrpcSession::AnnounceDrain() {
  nghttp2_submit_shutdown_notice(session_);
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  for (GrpcStream* stream = streams_.first(); stream != nullptr; stream = stream->links.next) {
    if (stream->events != nullptr && !stream->is_finished) stream->events->OnDrain();
  }
}

void GrpcSession::ConfirmDrain() {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

}  // namespace nereid::http2
