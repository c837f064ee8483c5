// SPDX-License-Identifier: Apache-2.0
// The replying half of Http1Connection: rendering heads, gathered writes from any thread, streams,
// and the end of an exchange. The receiving half is http1_connection.cc.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/check.h"
#include "http1/http1_connection.h"

namespace nereid::http1 {
namespace {

constexpr size_t kInlineParts = 30;
constexpr size_t kWriteParts = 64;
// Larger replies are sent at once instead of being kept for others.
constexpr size_t kMostDeferred = 4 << 10;
// Of a stream that brings more and more, before others have their turn.
constexpr int kMostSends = 16;

// Appends to a fixed block, and to the heap only beyond it.
class HeadText {
 public:
  void Append(std::string_view text) {
    if (text.empty()) return;
    if (heap_.empty() && size_ + text.size() <= sizeof inline_) {
      std::memcpy(inline_ + size_, text.data(), text.size());
      size_ += text.size();
      return;
    }
    if (heap_.empty()) heap_.assign(inline_, size_);
    heap_.append(text);
  }
  void AppendNumber(uint64_t number) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    Append({digits, static_cast<size_t>(end - digits)});
  }
  std::string_view text() const {
    return heap_.empty() ? std::string_view(inline_, size_) : std::string_view(heap_);
  }

 private:
  char inline_[1024];
  size_t size_ = 0;
  std::string heap_;
};

void AppendStatusLine(HeadText& head, int status) {
  if (status == 200) return head.Append("HTTP/1.1 200 OK\r\n");
  head.Append("HTTP/1.1 ");
  head.AppendNumber(static_cast<uint64_t>(status));
  head.Append(" ");
  head.Append(HttpReason(status));
  head.Append("\r\n");
}

void AppendFields(HeadText& head, const HttpReply& reply) {
  if (!reply.content_type.empty()) {
    head.Append("Content-Type: ");
    head.Append(reply.content_type);
    head.Append("\r\n");
  }
  head.Append(reply.headers);
}

void AppendConnection(HeadText& head, bool close, int version) {
  if (close) {
    head.Append("Connection: close\r\n");
  } else if (version < 11) {
    head.Append("Connection: keep-alive\r\n");
  }
}

iovec Part(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }
iovec Part(const HttpBodyPart& part) { return {const_cast<void*>(part.data), part.size}; }

}  // namespace

std::string_view HttpReason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 409:
      return "Conflict";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

size_t HttpHandler::BodySplit(const HttpHead&) { return kNoSplit; }

size_t HttpHandler::MaxBodyBytes(size_t, size_t configured) { return configured; }

base::BufferRef HttpHandler::BodyBuffer(const HttpHead& /*head*/, size_t /*split*/,
                                        size_t /*size*/) {
  return {};
}

void HttpExchangeDropper::operator()(HttpExchange* exchange) const {
  static_cast<Http1Connection*>(exchange)->Drop();
}

void HttpExchange::SetEvents(HttpExchangeEvents* events) {
  static_cast<Http1Connection*>(this)->ListenFor(events);
}

void HttpExchange::Respond(HttpExchangePtr exchange, HttpReply reply) {
  static_cast<Http1Connection*>(exchange.release())->Reply(reply);
}

bool HttpExchange::StartStream(const HttpReply& reply, std::string_view chunk) {
  return static_cast<Http1Connection*>(this)->BeginStream(reply, chunk);
}

bool HttpExchange::WriteChunk(std::string_view chunk) {
  return static_cast<Http1Connection*>(this)->StreamChunk(chunk);
}

void HttpExchange::EndStream(HttpExchangePtr exchange, std::string_view chunk) {
  static_cast<Http1Connection*>(exchange.release())->FinishStream(chunk);
}

// Called on any thread. What it may touch is the exchange's: everything the reactor leaves alone
// between Dispatch and Complete.
void Http1Connection::Reply(const HttpReply& reply) {
  DisarmEvents();
  close_after_ = close_after_ || reply.close || group().draining();
  uint64_t length = reply.text.size();
  for (const HttpBodyPart& part : reply.parts) length += part.size;

  HeadText head;
  AppendStatusLine(head, reply.status);
  AppendFields(head, reply);
  head.Append(reply_lines_);
  head.Append("Content-Length: ");
  head.AppendNumber(length);
  head.Append("\r\n");
  AppendConnection(head, close_after_, head_.version());
  head.Append("\r\n");

  const bool with_body = !omit_body_;
  iovec vector[kInlineParts + 2];
  size_t count = 0;
  vector[count++] = Part(head.text());
  size_t total = head.text().size();
  if (with_body) {
    vector[count++] = Part(reply.text);
    // A reply of more parts than fit goes out in several writes, the rest through the reactor.
    for (size_t i = 0; i < std::min(reply.parts.size(), kInlineParts); ++i) {
      vector[count++] = Part(reply.parts[i]);
    }
    total += length;
  }
  const bool is_whole = !with_body || reply.parts.size() <= kInlineParts;
  if (is_whole && total <= kMostDeferred && Defer({vector, count}, total, reply.owner)) return;
  AfterSend(Send(vector, count), total, head.text(), reply, with_body);
}

// `sent` is what Send gave of `head` and, `with_body`, the rest of `reply`: `total` bytes.
void Http1Connection::AfterSend(ssize_t sent, size_t total, std::string_view head,
                                const HttpReply& reply, bool with_body) {
  if (sent < 0) close_after_ = true;
  const bool pending = sent >= 0 && static_cast<size_t>(sent) < total;
  if (pending) {
    KeepPending(head, reply, static_cast<size_t>(sent), with_body);
  } else if (reply.owner != nullptr) {
    reply.owner->ReplySent();
  }
  Complete(pending || close_after_);
}

// Keeps a small reply until others to requests that came with this one are ready, as sending wakes
// a client that waits on the same machine, which costs more than all the rest, and does so once for
// those that follow. False when it is to be sent at once.
bool Http1Connection::Defer(std::span<const iovec> parts, size_t size, HttpReplyOwner* owner) {
  if (!reactor().IsCurrent() || !reactor().ExpectsAnswers()) return false;
  if (close_after_ || has_unparsed() || !in_) return false;
  if (in_.capacity() - in_end_ < size) return false;
  std::byte* to = in_.data() + in_end_;
  for (const iovec& part : parts) {
    if (part.iov_len == 0) continue;
    std::memcpy(to, part.iov_base, part.iov_len);
    to += part.iov_len;
  }
  deferred_size_ = size;
  deferred_owner_ = owner;
  reactor().RunTogether(send_);
  return true;
}

void Http1Connection::SendDeferred() {
  const std::string_view whole(reinterpret_cast<const char*>(in_.data()) + in_end_,
                               std::exchange(deferred_size_, 0));
  const iovec part = Part(whole);
  AfterSend(Send(&part, 1), whole.size(), whole, {.owner = std::exchange(deferred_owner_, nullptr)},
            false);
}

void Http1Connection::KeepPending(std::string_view head, const HttpReply& reply, size_t sent,
                                  bool with_body) {
  pending_ = std::make_unique<PendingReply>();
  pending_->owner = reply.owner;
  std::string& text = pending_->text;
  const auto keep = [&](std::string_view piece) {
    const size_t gone = std::min(sent, piece.size());
    sent -= gone;
    text.append(piece.substr(gone));
  };
  keep(head);
  if (!with_body) return;
  keep(reply.text);
  pending_->parts.reserve(reply.parts.size());
  for (HttpBodyPart& part : reply.parts) {
    const size_t gone = std::min(sent, part.size);
    sent -= gone;
    if (gone == part.size) continue;
    pending_->parts.push_back(
        {static_cast<const char*>(part.data) + gone, part.size - gone, std::move(part.owner)});
  }
}

void Http1Connection::DropPending() {
  if (pending_ == nullptr) return;
  const std::unique_ptr<PendingReply> pending = std::move(pending_);
  if (pending->owner != nullptr) pending->owner->ReplySent();
}

// Sends what the socket takes; true when nothing is left. A broken connection counts as done.
bool Http1Connection::WritePending() {
  PendingReply& reply = *pending_;
  for (;;) {
    iovec vector[kWriteParts];
    size_t count = 0;
    if (reply.text_sent < reply.text.size()) {
      vector[count++] = Part(std::string_view(reply.text).substr(reply.text_sent));
    }
    for (size_t i = reply.part; i < reply.parts.size() && count < kWriteParts; ++i) {
      const size_t skip = i == reply.part ? reply.part_sent : 0;
      const HttpBodyPart& part = reply.parts[i];
      vector[count++] = {const_cast<char*>(static_cast<const char*>(part.data)) + skip,
                         part.size - skip};
    }
    if (count == 0) return true;
    const ssize_t sent = Send(vector, count);
    if (sent < 0) {
      close_after_ = true;
      return true;
    }
    if (sent == 0) return false;
    last_activity_ms_ = CoarseNowMs();
    size_t left = static_cast<size_t>(sent);
    const size_t text = std::min(left, reply.text.size() - reply.text_sent);
    reply.text_sent += text;
    left -= text;
    while (left > 0) {
      HttpBodyPart& part = reply.parts[reply.part];
      const size_t step = std::min(left, part.size - reply.part_sent);
      reply.part_sent += step;
      left -= step;
      if (reply.part_sent == part.size) {
        part.owner.Reset();
        ++reply.part;
        reply.part_sent = 0;
      }
    }
  }
}

void Http1Connection::OnWritable() {
  // Without either flag this answers a wait of an exchange that is over.
  if (state_ != State::kBusy || (!write_handed_ && !stream_armed_)) return;
  if (stream_ != nullptr) return OnStreamWork();
  if (!WritePending()) return ArmWritable();
  DropPending();
  FinishExchange();
  Process();
}

// The exchange has been answered, or its rest is for the reactor to write. When needs_reactor is
// false, nothing of the connection may be touched after the phase has moved.
void Http1Connection::Complete(bool needs_reactor) {
  if (!reactor().IsCurrent()) {
    if (needs_reactor || phase_.exchange(kReplied, std::memory_order_acq_rel) == kHandlingNotify) {
      reactor().Post(resume_);
    }
    return;
  }
  const bool writing = pending_ != nullptr || stream_ != nullptr;
  if (in_handle_ && !writing) {
    phase_.store(kReplied, std::memory_order_relaxed);  // AfterHandle takes it from here
    return;
  }
  // Never into the next request from here: the caller may be deep inside another connection's.
  if (in_handle_ || notify_requested_ || writing || has_unparsed()) return reactor().Post(resume_);
  FinishExchange();
  Process();
}

// True while the exchange is unanswered; its end will then come as OnResume.
bool Http1Connection::RequestNotify() {
  if (notify_requested_) return true;
  uint8_t expected = kHandling;
  notify_requested_ = phase_.compare_exchange_strong(
      expected, kHandlingNotify, std::memory_order_acq_rel, std::memory_order_acquire);
  return notify_requested_;
}

void Http1Connection::OnResume() {
  if (closed()) {
    DropPending();
    stream_.reset();
    phase_.store(kReplied, std::memory_order_relaxed);
    notify_requested_ = false;
    if (std::exchange(held_, false)) Release();
    return;
  }
  if (pending_ != nullptr || stream_ != nullptr) {
    write_handed_ = true;
    last_activity_ms_ = CoarseNowMs();
    return OnWritable();
  }
  FinishExchange();
  Process();
}

void Http1Connection::FinishExchange() {
  phase_.store(kReplied, std::memory_order_relaxed);
  notify_requested_ = write_handed_ = stream_armed_ = false;
  stream_.reset();
  body_ = {};
  body_buffer_.Reset();
  head_buffer_.Reset();
  disconnected_.store(false, std::memory_order_relaxed);
  last_activity_ms_ = CoarseNowMs();
  state_ = State::kHead;
  if (close_after_) StartLinger();
}

// Closing at once could reset the connection and take the reply with it while the client is still
// sending; so the client gets to see the end first.
void Http1Connection::StartLinger() {
  if (eof_) return Close();
  state_ = State::kLinger;
  FinishSending();
}

bool Http1Connection::Refuse(HttpRefusal refusal) {
  head_.method_ = HttpMethod::kOther;
  head_.version_ = 11;
  reply_lines_ = {};
  omit_body_ = false;
  close_after_ = true;
  discard_buffer_.Reset();
  state_ = State::kBusy;
  phase_.store(kHandling, std::memory_order_relaxed);
  in_handle_ = true;
  const std::string body = fmt::format(R"({{"error":"{}"}})", refusal.text);
  Reply(
      {.status = refusal.status, .content_type = "application/json", .text = body, .close = true});
  in_handle_ = false;
  if (phase_.load(std::memory_order_relaxed) != kReplied)
    return false;  // the rest is being written
  FinishExchange();
  return true;
}

void Http1Connection::Drop() {
  if (!stream_started_) {
    return Reply({.status = 500,
                  .content_type = "application/json",
                  .text = R"({"error":"the request was dropped without an answer"})",
                  .close = true});
  }
  // Cut short: without a last chunk the client knows that the stream is not whole.
  DisarmEvents();
  {
    base::MutexLock lock(stream_->mutex);
    stream_->ended = stream_->broken = true;
    stream_->waiting.clear();
  }
  close_after_ = true;
  Complete(true);
}

void Http1Connection::OnClosed() {
  if (state_ != State::kBusy) return;
  if (!write_handed_ && RequestNotify()) {
    held_ = true;
    Hold();
    FireDisconnect();
    return;
  }
  DropPending();
  stream_.reset();
}

// --- events ---

void Http1Connection::ListenFor(HttpExchangeEvents* events) {
  if (events == nullptr) return DisarmEvents();
  const auto value = reinterpret_cast<uintptr_t>(events);
  uintptr_t current = events_.load();
  for (;;) {
    if (current == kFiring) {
      if (reactor().IsCurrent()) {
        events_changed_ = true;
        events_next_ = value;
        return;
      }
      std::this_thread::yield();
      current = events_.load();
    } else if (events_.compare_exchange_weak(current, value)) {
      break;
    }
  }
  if (!disconnected_.load()) return;
  if (events_.exchange(0) == value) events->OnDisconnect();
}

void Http1Connection::DisarmEvents() {
  uintptr_t current = events_.load(std::memory_order_acquire);
  while (current != 0) {
    if (current == kFiring) {
      if (reactor().IsCurrent()) {
        events_changed_ = true;
        events_next_ = 0;
        return;
      }
      std::this_thread::yield();  // a brief call is running on the reactor
      current = events_.load(std::memory_order_acquire);
    } else if (events_.compare_exchange_weak(current, 0, std::memory_order_acq_rel)) {
      return;
    }
  }
}

void Http1Connection::FireDisconnect() {
  if (disconnected_.exchange(true)) return;
  const uintptr_t events = events_.exchange(kFiring);
  NEREID_CHECK(events != kFiring);
  if (events != 0) reinterpret_cast<HttpExchangeEvents*>(events)->OnDisconnect();
  events_changed_ = false;
  events_.store(0);
}

// --- streams ---

bool Http1Connection::BeginStream(const HttpReply& reply, std::string_view chunk) {
  NEREID_CHECK(reply.text.empty() && reply.parts.empty() && !stream_started_);
  stream_chunked_ = head_.version() >= 11;
  close_after_ = close_after_ || reply.close || group().draining() || !stream_chunked_;
  HeadText head;
  AppendStatusLine(head, reply.status);
  AppendFields(head, reply);
  head.Append(reply_lines_);
  if (stream_chunked_) head.Append("Transfer-Encoding: chunked\r\n");
  AppendConnection(head, close_after_, head_.version());
  head.Append("\r\n");
  stream_ = std::make_unique<Stream>();
  stream_started_ = true;
  Stream& stream = *stream_;
  {
    base::MutexLock lock(stream.mutex);
    stream.waiting.append(head.text());
    AppendChunk(stream, chunk);
  }
  return FlushStream(stream) || HasRoom(stream);
}

bool Http1Connection::HasRoom(Stream& stream) {
  base::MutexLock lock(stream.mutex);
  stream.full = stream.waiting.size() > core_.options.max_stream_buffer;
  return !stream.full;
}

void Http1Connection::AppendChunk(Stream& stream, std::string_view chunk) {
  if (stream.broken || chunk.empty() || omit_body_) return;
  if (!stream_chunked_) {
    stream.waiting.append(chunk);
    return;
  }
  fmt::format_to(std::back_inserter(stream.waiting), "{:x}\r\n", chunk.size());
  stream.waiting.append(chunk);
  stream.waiting.append("\r\n");
}

bool Http1Connection::StreamChunk(std::string_view chunk) {
  NEREID_CHECK(stream_started_);
  Stream& stream = *stream_;
  {
    base::MutexLock lock(stream.mutex);
    if (stream.broken) return true;
    AppendChunk(stream, chunk);
    if (!reactor().IsCurrent() && stream.pace.IsInBurst(base::NowNs())) {
      LeaveToReactor(stream);
      stream.full = stream.waiting.size() > core_.options.max_stream_buffer;
      return !stream.full;
    }
  }
  return FlushStream(stream) || HasRoom(stream);
}

void Http1Connection::FinishStream(std::string_view chunk) {
  NEREID_CHECK(stream_started_);
  DisarmEvents();
  {
    base::MutexLock lock(stream_->mutex);
    AppendChunk(*stream_, chunk);
    if (stream_chunked_ && !stream_->broken && !omit_body_) {
      stream_->waiting.append("0\r\n\r\n");
    }
    stream_->ended = true;
  }
  bool left = !FlushStream(*stream_);
  {
    base::MutexLock lock(stream_->mutex);
    left = left || stream_->task_posted;
    if (stream_->broken) close_after_ = true;
  }
  if (!left) stream_.reset();
  Complete(left || close_after_);
}

bool Http1Connection::FlushStream(Stream& stream) {
  {
    base::MutexLock lock(stream.mutex);
    if (stream.is_sending) return false;  // looks again before it stops
    stream.is_sending = true;
  }
  return SendWaiting(stream);
}

bool Http1Connection::SendWaiting(Stream& stream) {
  ssize_t sent = 0;
  for (int sends = 0;; ++sends) {
    {
      base::MutexLock lock(stream.mutex);
      if (sent < 0) stream.broken = true;
      stream.is_stuck = sent >= 0 && static_cast<size_t>(sent) < stream.sending.size();
      if (stream.is_stuck) stream.waiting.insert(0, stream.sending, static_cast<size_t>(sent));
      stream.sending.clear();
      if (stream.broken) stream.waiting.clear();
      const bool is_done = stream.waiting.empty();
      if (is_done || stream.is_stuck || sends == kMostSends) {
        stream.is_sending = false;
        if (!is_done) LeaveToReactor(stream);
        return is_done;
      }
      stream.sending.swap(stream.waiting);
    }
    const iovec part = Part(stream.sending);
    sent = Send(&part, 1);
  }
}

void Http1Connection::LeaveToReactor(Stream& stream) {
  if (!std::exchange(stream.task_posted, true)) reactor().Post(stream_task_);
}

// On the reactor: the socket takes bytes again, or chunks were left to it.
void Http1Connection::OnStreamWork() {
  if (closed() || stream_ == nullptr || state_ != State::kBusy) return;
  Stream& stream = *stream_;
  {
    base::MutexLock lock(stream.mutex);
    if (stream.is_sending) {  // by who brings chunks, and leaves the rest here again
      stream.task_posted = false;
      return;
    }
    stream.task_posted = stream.is_sending = true;  // while this runs or waits for the socket
  }
  SendWaiting(stream);
  bool finished;
  bool room = false;
  {
    base::MutexLock lock(stream.mutex);
    finished = stream.ended && stream.waiting.empty();
    if (stream.broken) close_after_ = close_after_ || finished;
    stream_armed_ = stream.is_stuck && !stream.waiting.empty();
    if (stream_armed_) {
      last_activity_ms_ = CoarseNowMs();
      ArmWritable();
    } else if (!stream.waiting.empty()) {
      reactor().Post(stream_task_);  // after what else there is to do
    } else {
      stream.task_posted = false;
      room = std::exchange(stream.full, false);
    }
  }
  if (finished && write_handed_) {
    FinishExchange();
    Process();
    return;
  }
  if (!room) return;
  const uintptr_t events = events_.exchange(kFiring);
  events_changed_ = false;
  if (events != 0 && events != kFiring) {
    reinterpret_cast<HttpExchangeEvents*>(events)->OnStreamWritable();
  }
  events_.store(events_changed_ ? events_next_ : events);
}

}  // namespace nereid::http1
