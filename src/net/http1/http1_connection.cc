// SPDX-License-Identifier: Apache-2.0
#include "http1/http1_connection.h"

#include <random>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace nereid::http1 {
namespace {

// A client that sends many requests at once has so many handled before others have their turn.
constexpr int kRequestsPerTurn = 4;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kRetryLater = "Retry-After: 1\r\n";

double Jitter() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<>(0, 1)(random);
}

}  // namespace

Http1Connection::Http1Connection(net::Reactor& reactor, HttpServer::Core& core,
                                 net::Accepted accepted, std::unique_ptr<net::TlsChannel> tls)
    : net::Connection(reactor, core.group, std::move(accepted), std::move(tls)),
      core_(core),
      receiver_(request_, core.handler, core.options),
      timeouts_(core.options) {
  home_ = &reactor;
  HttpExchange::is_crowded_ = net::Connection::is_crowded();
}

void Http1Connection::Start() {
  if (closed()) return Release();  // the socket could not be watched
  timeouts_.Begin(CoarseNowMs(), core_.options.max_connection_age.count() > 0 ? Jitter() : 0);
  if (is_crowded()) timeouts_.ExpireNow();
  Process();
}

// --- receiving ---

void Http1Connection::Process() {
  using Step = RequestReceiver::Step;
  int handled = 0;
  while (!closed() && state_ != State::kBusy) {
    switch (receiver_.Advance()) {
      case Step::kIdle:
        if (eof_ || core_.closes_idle.load()) return Close();
        return WaitForBytes();
      case Step::kRead:
        return ReadMore();
      case Step::kContinue:
        SendContinue();
        break;
      case Step::kRequest:
        if (!Dispatch()) return;
        if (++handled >= kRequestsPerTurn && receiver_.has_more()) return ProcessSoon();
        break;
      case Step::kRefused:
        if (!Refuse(receiver_.refusal())) return;
        break;
    }
  }
}

void Http1Connection::ProcessSoon() {
  Hold();
  reactor().RunSoon(turn_);
}

void Http1Connection::OnTurn() {
  if (!closed()) Process();
  Release();
}

void Http1Connection::ReadMore() {
  if (eof_) return Close();
  if (read_armed()) return;
  const std::span<std::byte> room = receiver_.Room();
  if (room.empty()) return Close();
  ArmRead(room.data(), room.size());
}

void Http1Connection::WaitForBytes() {
  if (closed()) return;
  if (state_ != State::kBusy) receiver_.Release();
  if (!read_armed()) ArmReadable();
}

void Http1Connection::BeginExchange(bool closes) {
  state_ = State::kBusy;
  stream_started_ = false;
  reply_lines_ = {};
  omit_body_ = head().method() == HttpMethod::kHead;
  close_after_ = closes;
  handover_.Begin();
  in_handle_ = true;
}

bool Http1Connection::Dispatch() {
  BeginExchange(!head().keep_alive() || receiver_.leaves_rest() ||
                timeouts_.IsTooOld(CoarseNowMs()));
  timeouts_.NoteRequest();
  core_.handler.Handle(HttpExchangePtr(this));
  in_handle_ = false;
  if (!handover_.is_replied()) {
    // Bytes that follow are read after the reply, which may lie in the memory for the next read.
    if (writer_.is_deferred()) return false;
    // Bytes of the next request wait where they are; if there are none, reading detects a
    // disconnect.
    if (!receiver_.has_more()) {
      WaitForBytes();
      return false;
    }
    if (handover_.RequestNotice()) {
      NoticeClientEnd();
      return false;
    }
  }
  FinishExchange();
  return true;
}

// A client that has sent further requests may close its side and wait for all replies.
void Http1Connection::NoticeClientEnd() {
  if (state_ != State::kBusy || write_handed_) return;
  const bool has_left = client_has_gone() || (client_has_ended() && receiver_.has_only_blanks());
  if (has_left && handover_.RequestNotice()) listener_.Disconnect();
}

bool Http1Connection::Refuse(const HttpRefusal& refusal) {
  BeginExchange(/*closes=*/true);
  const HttpErrorBody body = core_.handler.ErrorBody(refusal.text);
  Reply({.status = refusal.status,
         .content_type = body.content_type,
         .headers = refusal.status == 503 ? kRetryLater : std::string_view(),
         .text = body.text});
  in_handle_ = false;
  if (!handover_.is_replied()) return false;  // the rest is being written
  FinishExchange();
  return true;
}

void Http1Connection::SendContinue() {
  const iovec text = Piece(kContinue);
  // What the socket does not take cannot be sent later, when a reply may go first.
  if (Send(&text, 1) != static_cast<ssize_t>(text.iov_len)) Close();
}

void Http1Connection::OnRead(size_t n) {
  timeouts_.NoteProgress(CoarseNowMs());
  receiver_.Received(n);
  if (state_ == State::kBusy) {
    if (handover_.RequestNotice()) return NoticeClientEnd();
    FinishExchange();
  }
  Process();
}

void Http1Connection::OnReadEnd(bool eof) {
  if (state_ != State::kBusy) return Close();
  eof_ = true;
  if (write_handed_) {
    // A client that closed only its sending side still gets the rest of its reply.
    if (!eof) Close();
    return;
  }
  if (handover_.RequestNotice()) return listener_.Disconnect();
  FinishExchange();
  Process();
}

void Http1Connection::OnReadable() {
  // A deferred reply lies in the memory for the next read; reading continues after it.
  if (writer_.is_deferred()) return;
  if (HasReplied()) {
    FinishExchange();
    if (closed()) return;
    receiver_.Release();
  }
  const std::span<std::byte> room = receiver_.Room();
  if (room.empty()) return Close();
  const ssize_t n = Receive(room.data(), room.size());
  if (n > 0) return OnRead(static_cast<size_t>(n));
  if (n < 0) return OnReadEnd(true);
  WaitForBytes();
}

void Http1Connection::OnDrain() {
  if (state_ == State::kBusy) {
    if (write_handed_ || handover_.RequestNotice()) return;
    FinishExchange();
  }
  if (!core_.closes_idle.load()) return;
  if (CurrentSituation().activity == Timeouts::Activity::kIdle && !receiver_.has_more()) Close();
}

Timeouts::Situation Http1Connection::CurrentSituation() const {
  using Activity = Timeouts::Activity;
  Timeouts::Situation situation;
  switch (state_) {
    case State::kReceiving:
      if (receiver_.is_in_body()) {
        situation.activity = Activity::kBody;
        situation.body_bytes = receiver_.arrived_body_bytes();
      } else if (receiver_.is_in_head()) {
        situation.activity = Activity::kHead;
        situation.head_since_ms = start_ns() / 1'000'000;
      }
      break;
    case State::kBusy:
      situation.activity = write_armed() ? Activity::kSending : Activity::kHandling;
      if (write_armed()) situation.unsent_bytes = writer_.rest_bytes();
      break;
    case State::kLinger:
      situation.activity = Activity::kLingering;
      break;
  }
  situation.is_draining = group().draining();
  return situation;
}

void Http1Connection::OnSweep(uint64_t now_ms) {
  if (HasReplied()) {
    FinishExchange();
    Process();
    if (closed()) return;
  }
  Timeouts::Situation now = CurrentSituation();
  now.is_crowded = group().is_crowded(now_ms);
  const base::Budget* const received = core_.options.received_bytes;
  now.is_short = received != nullptr && received->is_scarce();
  switch (timeouts_.Check(now_ms, now)) {
    case Timeouts::Verdict::kGoOn:
      return WeighUnsent();
    case Timeouts::Verdict::kClose:
      return Close();
    case Timeouts::Verdict::kRefuseSlowBody:
      return EndBody(408, "the request body is arriving too slowly");
    case Timeouts::Verdict::kRefuseForOthers:
      return EndBody(503,
                     "the request body is arriving too slowly while --max-request-memory is nearly "
                     "used up");
  }
}

// An output that the socket does not take at once is mostly gone a moment later, so that looking
// once a second is enough.
void Http1Connection::WeighUnsent() {
  base::Budget* const budget = core_.options.unsent_bytes;
  if (budget == nullptr) return;
  uint64_t bytes = 0;
  if (state_ == State::kBusy && write_armed()) {
    bytes = writer_.rest_bytes() + (is_stream_waiting_ ? stream_->waiting_bytes() : 0);
  }
  if (!unsent_.Resize(*budget, bytes)) Close();
}

// The pending read into the body stays armed, so nothing but the end can follow.
void Http1Connection::EndBody(int status, std::string_view reason) {
  const HttpErrorBody body = core_.handler.ErrorBody(reason);
  const HttpReply reply{.status = status,
                        .content_type = body.content_type,
                        .headers = status == 503 ? kRetryLater : std::string_view(),
                        .text = body.text};
  const ReplyMessage message(reply, {.closes = true});
  Send(message.pieces().data(), message.pieces().size());
  Close();
}

// --- replying, on any thread --- These functions may use only the exchange's members, which the
// reactor does not touch between Dispatch and Complete.

ReplyForm Http1Connection::reply_form() const {
  return {.lines = reply_lines_,
          .omits_body = omit_body_,
          .closes = close_after_,
          .version = head().version()};
}

// A small reply waits for other replies to requests that arrived with this one. Sending wakes a
// client on the same machine, which costs more than everything else, and one wake-up then serves
// all replies.
void Http1Connection::Reply(const HttpReply& reply) {
  listener_.Clear();
  if (on_reply_) [[unlikely]]
    std::exchange(on_reply_, {})(reply.status);
  close_after_ = close_after_ || reply.close || group().draining();
  const ReplyMessage message(reply, reply_form());
  if (message.is_small() && reactor().IsCurrent() && reactor().ExpectsResponses() &&
      !close_after_ && !receiver_.has_more() && writer_.Defer(message, receiver_.Spare())) {
    return reactor().RunTogether(send_);
  }
  const ssize_t sent = Send(message.pieces().data(), message.pieces().size());
  AfterSend(sent, writer_.Sent(message, sent));
}

void Http1Connection::SendDeferred() {
  const iovec piece = Piece(writer_.deferred());
  const ssize_t sent = Send(&piece, 1);
  AfterSend(sent, writer_.SentDeferred(sent));
}

void Http1Connection::AfterSend(ssize_t sent, bool is_through) {
  if (sent < 0) close_after_ = true;
  Complete(!is_through || close_after_);
}

bool Http1Connection::SendRest() {
  iovec pieces[ReplyWriter::kMaxPieces];
  while (const size_t count = writer_.FillPieces(pieces)) {
    const ssize_t sent = Send(pieces, count);
    if (sent == 0) return false;
    if (sent < 0) {
      close_after_ = true;
      break;
    }
    timeouts_.NoteProgress(CoarseNowMs());
    writer_.SentRest(static_cast<size_t>(sent));
  }
  return true;
}

void Http1Connection::Drop() {
  if (!stream_started_) {
    const HttpErrorBody body =
        core_.handler.ErrorBody("the server dropped the request without a response");
    return Reply(
        {.status = 500, .content_type = body.content_type, .text = body.text, .close = true});
  }
  listener_.Clear();
  stream_->Cut();
  close_after_ = true;
  Complete(true);
}

bool Http1Connection::BeginStream(const HttpReply& reply, std::string_view chunk) {
  NEREID_CHECK(reply.text.empty() && reply.parts.empty() && !stream_started_);
  const bool is_chunked = head().version() >= 11;
  close_after_ = close_after_ || reply.close || group().draining() || !is_chunked;
  const StreamFraming framing = is_chunked ? StreamFraming::kChunks : StreamFraming::kUntilClose;
  const ReplyHead text(reply, reply_form(), framing);
  stream_ = std::make_unique<StreamWriter>(framing, omit_body_, core_.options.max_stream_buffer);
  stream_started_ = true;
  return SendTurn(*stream_, stream_->Begin(text.text(), chunk)).has_room;
}

bool Http1Connection::StreamChunk(std::string_view chunk) {
  NEREID_CHECK(stream_started_);
  const uint64_t now_ns = reactor().IsCurrent() ? 0 : base::NowNs();
  return SendTurn(*stream_, stream_->Write(chunk, now_ns)).has_room;
}

void Http1Connection::FinishStream(std::string_view chunk) {
  NEREID_CHECK(stream_started_);
  listener_.Clear();
  const StreamWriter::Step step = SendTurn(*stream_, stream_->End(chunk));
  if (step.is_broken) close_after_ = true;
  if (step.is_over) stream_.reset();
  Complete(!step.is_over || close_after_);
}

StreamWriter::Step Http1Connection::SendTurn(StreamWriter& stream, StreamWriter::Step step) {
  while (step.next == StreamWriter::Next::kSend) {
    const iovec piece = Piece(stream.sending());
    step = stream.Sent(Send(&piece, 1));
  }
  if (step.next == StreamWriter::Next::kPost) reactor().Post(stream_task_);
  return step;
}

// --- the reactor's part of replies, and the end of an exchange ---

void Http1Connection::TakeStreamTurn(StreamWriter::Cause cause) {
  if (closed() || stream_ == nullptr || state_ != State::kBusy) return;
  // Once the turn has ended, the writer may end the stream and reset stream_.
  StreamWriter& stream = *stream_;
  const StreamWriter::Step step = SendTurn(stream, stream.TakeTurn(cause));
  is_stream_waiting_ = step.next == StreamWriter::Next::kWait;
  if (is_stream_waiting_) {
    timeouts_.NoteProgress(CoarseNowMs());
    return ArmWritable();
  }
  if (step.is_over && write_handed_) {
    close_after_ = close_after_ || step.is_broken;
    FinishExchange();
    return Process();
  }
  if (step.has_resumed) listener_.ResumeStream();
}

void Http1Connection::OnWritable() {
  // If neither flag is set, this wait belonged to an exchange that is over.
  if (state_ != State::kBusy || (!write_handed_ && !is_stream_waiting_)) return;
  if (stream_ != nullptr) return TakeStreamTurn(StreamWriter::Cause::kRoom);
  if (!SendRest()) return ArmWritable();
  writer_.DropRest();
  FinishExchange();
  Process();
}

bool Http1Connection::HasReplied() const {
  return state_ == State::kBusy && !handover_.is_notice_requested() && !write_handed_ &&
         handover_.is_replied();
}

// Called when the reply has been written, or the reactor is to write its rest. If needs_reactor is
// false, nothing of the connection may be touched after the handover.
void Http1Connection::Complete(bool needs_reactor) {
  if (!reactor().IsCurrent()) {
    if (needs_reactor || handover_.MarkReplied()) reactor().Post(resume_);
    return;
  }
  const bool is_writing = writer_.has_rest() || stream_ != nullptr;
  if (in_handle_ && !is_writing) {
    handover_.MarkRepliedInHandler();  // Dispatch continues
    return;
  }
  // Never starts the next request from here, because the caller may be deep inside another
  // connection's call.
  if (in_handle_ || is_writing || handover_.is_notice_requested() || receiver_.has_more()) {
    return reactor().Post(resume_);
  }
  FinishExchange();
  Process();
}

void Http1Connection::OnResume() {
  if (closed()) {
    writer_.DropRest();
    stream_.reset();
    handover_.End();
    if (std::exchange(held_, false)) Release();
    return;
  }
  if (stream_ != nullptr || writer_.has_rest()) {
    write_handed_ = true;
    timeouts_.NoteProgress(CoarseNowMs());
    return stream_ != nullptr ? TakeStreamTurn(StreamWriter::Cause::kEnd) : OnWritable();
  }
  FinishExchange();
  Process();
}

void Http1Connection::FinishExchange() {
  handover_.End();
  write_handed_ = is_stream_waiting_ = false;
  stream_.reset();
  receiver_.Finish();
  listener_.Reset();
  sender_.reset();
  timeouts_.NoteProgress(CoarseNowMs());
  state_ = State::kReceiving;
  if (!close_after_) return;
  // Closing at once could reset the connection and destroy the reply while the client is still
  // sending; so the client sees the end of the stream first.
  if (eof_) return Close();
  state_ = State::kLinger;
  receiver_.IgnoreRest();
  FinishSending();
}

void Http1Connection::OnClosed() {
  if (state_ != State::kBusy) return;
  if (!write_handed_ && handover_.RequestNotice()) {
    held_ = true;
    Hold();
    listener_.Disconnect();
    return;
  }
  writer_.DropRest();
  stream_.reset();
}

}  // namespace nereid::http1
