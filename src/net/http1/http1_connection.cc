// SPDX-License-Identifier: Apache-2.0
// The receiving half: from bytes to a dispatched exchange. The replying half is http1_reply.cc.
//
// Where bytes go. Heads and small bodies are received into in_, at a place chosen so that, if the
// next request is laid out like the last, its tensor bytes come out 64-byte aligned where they lie;
// a binary body that does not is copied once. A body that is not whole in in_ is received straight
// into its own buffer. in_ is started over only when nobody else holds it; otherwise reading goes
// on behind the bytes in use (leaving the readable padding bodies are promised) or in a fresh
// buffer.
#include "http1/http1_connection.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "base/clock.h"

namespace nereid::http1 {
namespace {

// What one read takes: of a client whose requests fit, and of any other.
constexpr size_t kSmallReceiveBytes = (4 << 10) - base::kBufferOverhead;
constexpr size_t kReceiveBytes = (16 << 10) - base::kBufferOverhead;
constexpr size_t kLeastRoom = 2 << 10;
constexpr size_t kDiscardBytes = (256 << 10) - base::kBufferOverhead;
constexpr size_t kFirstChunkedBody = (16 << 10) - base::kBufferOverhead;
constexpr uint64_t kLingerMs = 2'000;
// A client that has sent nothing for so long will hardly be sending just now.
constexpr std::chrono::milliseconds kQuiet{2'000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

size_t RoundUp(size_t n) {
  return (n + base::kBufferAlignment - 1) / base::kBufferAlignment * base::kBufferAlignment;
}

}  // namespace

Http1Connection::Http1Connection(net::Reactor& reactor, HttpServer::Core& core,
                                 base::UniqueFd socket, std::unique_ptr<net::TlsChannel> tls)
    : net::Connection(reactor, core.group, std::move(socket), std::move(tls)),
      core_(core),
      receive_bytes_(kSmallReceiveBytes) {
  home_ = &reactor;
  HttpExchange::is_crowded_ = net::Connection::is_crowded();
}

void Http1Connection::Start() {
  if (closed()) return Release();  // the socket could not be watched
  last_activity_ms_ = CoarseNowMs();
  if (const auto age_ms = static_cast<uint64_t>(core_.options.max_connection_age.count());
      age_ms > 0) {
    thread_local std::minstd_rand random{std::random_device{}()};
    const uint64_t jitter_ms = std::uniform_int_distribution<uint64_t>(0, age_ms / 5)(random);
    retire_at_ms_ = last_activity_ms_ + age_ms - age_ms / 10 + jitter_ms;
  }
  if (is_crowded()) retire_at_ms_ = 1;  // with its first reply
  Process();
}

void Http1Connection::Process() {
  bool more = true;
  while (more && !closed()) {
    switch (state_) {
      case State::kHead:
        more = StepHead();
        break;
      case State::kBody:
        more = StepBody();
        break;
      case State::kDiscard:
        more = StepDiscard();
        break;
      case State::kChunks:
        more = StepChunks();
        break;
      case State::kBusy:
        more = false;
        break;
      case State::kLinger:
        in_begin_ = in_end_;
        ReadMore();
        more = false;
        break;
    }
  }
}

bool Http1Connection::StepHead() {
  while (in_end_ - in_begin_ >= 2 && unparsed().starts_with("\r\n") && scanner_.size() == 0) {
    in_begin_ += 2;  // RFC 9112 2.2: blank lines before a request are skipped
  }
  if (!has_unparsed()) {
    head_since_ms_ = 0;
    if (eof_ || group().draining()) {
      Close();
      return false;
    }
    WaitForBytes();
    return false;
  }
  if (head_since_ms_ == 0) {
    head_since_ms_ = CoarseNowMs();
    start_ns_ = base::NowNs();
  }
  if (scanner_.size() == 0) {
    if (const size_t size =
            HttpHeadParser::ReadPlain(unparsed(), core_.options.max_header_bytes, head_)) {
      in_begin_ += size;
      return BeginBody();
    }
  }
  const auto found = scanner_.Scan(unparsed());
  const size_t seen =
      found == HttpHeadScanner::State::kComplete ? scanner_.size() : in_end_ - in_begin_;
  if (found == HttpHeadScanner::State::kBad) return Refuse({400, "malformed HTTP request"});
  if (seen > core_.options.max_header_bytes) return Refuse({431, "request head is too large"});
  if (found == HttpHeadScanner::State::kIncomplete) {
    is_head_split_ = true;
    if (eof_) {
      Close();
    } else {
      ReadMore();
    }
    return false;
  }
  parser_.emplace(head_, core_.options.max_header_bytes);
  const HttpRefusal refusal = parser_->ParseHead(unparsed().substr(0, seen));
  in_begin_ += seen;
  scanner_.Reset();
  if (refusal.status != 0) return Refuse(refusal);
  return BeginBody();
}

bool Http1Connection::BeginBody() {
  head_since_ms_ = 0;
  // What comes at once begins and ends at the same time.
  received_ns_ = std::exchange(is_head_split_, false) ? base::NowNs() : start_ns_;
  body_ = {};
  body_size_ = 0;
  body_truncated_ = chunk_overflow_ = false;
  body_got_ = body_wanted_ = 0;
  discard_left_ = 0;
  window_since_ms_ = 0;
  close_after_ = !head_.keep_alive_ || IsTooOld();
  reply_lines_ = {};
  omit_body_ = head_.method_ == HttpMethod::kHead;
  const uint64_t length = head_.content_length_.value_or(0);
  if (length == 0 && !head_.chunked_) return Dispatch();
  ForeseeSize(length);
  split_ = core_.handler.BodySplit(head_);
  max_body_bytes_ = core_.handler.MaxBodyBytes(split_, core_.options.max_body_bytes);
  body_offset_ = SplitOffset();
  if (head_.expect_continue_ && !has_unparsed()) SendContinue();
  if (!head_.chunked_) return BeginBodyOfLength(length);
  state_ = State::kChunks;
  return true;
}

// A client's next request is mostly of the size of its last. One that fits a large read costs one
// system call; one that fits no read at all is copied the less, the less of it came with its head.
void Http1Connection::ForeseeSize(uint64_t body_length) {
  const uint64_t taken = in_begin_ + body_length;
  const bool needs_large = head_.chunked_ || (taken > kSmallReceiveBytes && taken <= kReceiveBytes);
  receive_bytes_ = needs_large ? kReceiveBytes : kSmallReceiveBytes;
}

// Bytes to leave free at the start of an aligned buffer so that byte split_ of the body is aligned.
size_t Http1Connection::SplitOffset() const {
  if (split_ == HttpHandler::kNoSplit) return 0;
  return RoundUp(split_) - split_;
}

bool Http1Connection::BeginBodyOfLength(uint64_t length) {
  body_size_ = length;
  if (length <= max_body_bytes_) {
    if (in_end_ - in_begin_ >= length) return PlaceWholeBody(length);
    body_wanted_ = length;
    body_buffer_ = core_.handler.BodyBuffer(head_, split_, body_offset_ + length);
  } else {
    body_truncated_ = true;
    if (split_ != HttpHandler::kNoSplit) {
      body_wanted_ = std::min<uint64_t>({split_, max_body_bytes_, length});
    }
    discard_left_ = length - body_wanted_;
    if (discard_left_ > core_.options.max_discard_bytes) {
      discard_left_ = 0;
      close_after_ = true;
    }
  }
  if (body_wanted_ > 0) {
    if (!body_buffer_) body_buffer_ = base::AcquireArrivalBuffer(body_offset_ + body_wanted_);
    if (!body_buffer_) return Refuse({503, "out of memory for the request body"});
    body_got_ = std::min(body_wanted_, in_end_ - in_begin_);
    std::memcpy(body_buffer_.data() + body_offset_, unparsed().data(), body_got_);
    in_begin_ += body_got_;
  }
  state_ = State::kBody;
  return true;
}

bool Http1Connection::PlaceWholeBody(size_t length) {
  const bool binary = split_ != HttpHandler::kNoSplit && split_ < length;
  const size_t misplaced = binary ? (in_begin_ + split_) % base::kBufferAlignment : 0;
  if (binary) {
    const size_t head_size =
        static_cast<size_t>(reinterpret_cast<const std::byte*>(unparsed().data()) -
                            reinterpret_cast<const std::byte*>(head_.method_text_.data()));
    predicted_split_ = (head_size + split_) % base::kBufferAlignment;
  }
  const size_t shift = misplaced == 0 ? 0 : base::kBufferAlignment - misplaced;
  const bool fits = in_end_ - in_begin_ == length && in_.capacity() - in_end_ >= shift;
  if (shift != 0 && fits) {
    std::memmove(in_.data() + in_begin_ + shift, in_.data() + in_begin_, length);
    in_begin_ += shift;
    in_end_ += shift;
  }
  if (shift == 0 || fits) {
    body_buffer_ = in_;
    body_ = unparsed().substr(0, length);
  } else {
    body_buffer_ = base::AcquireBuffer(body_offset_ + length);
    if (!body_buffer_) return Refuse({503, "out of memory for the request body"});
    auto* to = reinterpret_cast<char*>(body_buffer_.data()) + body_offset_;
    std::memcpy(to, unparsed().data(), length);
    body_ = {to, length};
  }
  in_begin_ += length;
  return Dispatch();
}

bool Http1Connection::StepBody() {
  if (body_got_ < body_wanted_) {
    ArmRead(body_buffer_.data() + body_offset_ + body_got_, body_wanted_ - body_got_);
    return false;
  }
  if (body_wanted_ > 0) {
    body_ = {reinterpret_cast<const char*>(body_buffer_.data()) + body_offset_, body_wanted_};
  }
  if (discard_left_ > 0) {
    state_ = State::kDiscard;
    return true;
  }
  received_ns_ = base::NowNs();
  return Dispatch();
}

bool Http1Connection::StepDiscard() {
  const size_t here = std::min<uint64_t>(discard_left_, in_end_ - in_begin_);
  in_begin_ += here;
  discard_left_ -= here;
  if (discard_left_ > 0) {
    if (!discard_buffer_) discard_buffer_ = base::AcquireBuffer(kDiscardBytes);
    if (!discard_buffer_) return Refuse({503, "out of memory"});
    ArmRead(discard_buffer_.data(), std::min<uint64_t>(discard_left_, kDiscardBytes));
    return false;
  }
  discard_buffer_.Reset();
  received_ns_ = base::NowNs();
  return Dispatch();
}

bool Http1Connection::StepChunks() {
  const auto progress = parser_->ParseChunks(unparsed(), *this);
  in_begin_ += progress.consumed;
  if (progress.refusal.status != 0) return Refuse(progress.refusal);
  if (chunk_overflow_) return Refuse({413, "request body is too large"});
  if (!progress.done) {
    // What is left is one incomplete line or trailer section.
    if (in_end_ - in_begin_ >= kReceiveBytes) return Refuse({400, "chunk header is too large"});
    ReadMore();
    return false;
  }
  if (body_got_ > 0 && !body_truncated_) {
    body_ = {reinterpret_cast<const char*>(body_buffer_.data()) + body_offset_, body_got_};
  }
  received_ns_ = base::NowNs();
  return Dispatch();
}

void Http1Connection::OnChunkBytes(std::string_view bytes) {
  body_size_ += bytes.size();
  if (body_size_ > max_body_bytes_) {
    body_truncated_ = true;
    body_buffer_.Reset();
    body_got_ = 0;
    chunk_overflow_ |= body_size_ - max_body_bytes_ > core_.options.max_discard_bytes;
    return;
  }
  const size_t needed = body_got_ + bytes.size();
  if (!body_buffer_ || body_buffer_.capacity() - body_offset_ < needed) {
    const size_t target = std::max({needed, body_got_ * 2, kFirstChunkedBody});
    base::BufferRef larger = base::AcquireBuffer(body_offset_ + std::min(target, max_body_bytes_));
    if (!larger) {
      chunk_overflow_ = true;
      return;
    }
    if (body_got_ > 0) {
      std::memcpy(larger.data() + body_offset_, body_buffer_.data() + body_offset_, body_got_);
    }
    body_buffer_ = std::move(larger);
  }
  std::memcpy(body_buffer_.data() + body_offset_ + body_got_, bytes.data(), bytes.size());
  body_got_ = needed;
}

bool Http1Connection::Dispatch() {
  state_ = State::kBusy;
  stream_started_ = false;
  phase_.store(kHandling, std::memory_order_relaxed);
  in_handle_ = true;
  core_.handler.Handle(HttpExchangePtr(this));
  in_handle_ = false;
  return AfterHandle();
}

// True when the exchange is over and the next request may begin.
bool Http1Connection::AfterHandle() {
  if (phase_.load(std::memory_order_acquire) == kReplied) {
    FinishExchange();
    return true;
  }
  if (deferred_size_ != 0) return false;
  // Bytes of a next request wait where they are; without any, waiting finds out when the client
  // goes.
  if (!has_unparsed()) {
    WaitForBytes();
    return false;
  }
  if (RequestNotify()) return false;
  FinishExchange();
  return true;
}

void Http1Connection::SendContinue() {
  const iovec text{const_cast<char*>(kContinue.data()), kContinue.size()};
  // What is not taken cannot be sent later, when a reply may go first.
  if (Send(&text, 1) != static_cast<ssize_t>(text.iov_len)) Close();
}

void Http1Connection::ReadMore() {
  if (read_armed() || closed()) return;
  if (!EnsureRoom()) return Close();
  ArmRead(in_.data() + in_end_, in_.capacity() - in_end_);
}

// Between requests a connection has no buffer: the next request of any connection then finds one
// that is still in the processor's cache, and ten thousand idle ones need none.
void Http1Connection::WaitForBytes() {
  if (closed()) return;
  if (state_ != State::kBusy) {
    in_.Reset();
    in_begin_ = in_end_ = 0;
  }
  if (!read_armed()) ArmReadable();
}

// The first place from `from` on at which a request like the last one has its tensors aligned.
size_t Http1Connection::ReadPosition(size_t from) const {
  return RoundUp(from + predicted_split_) - predicted_split_;
}

bool Http1Connection::EnsureRoom() {
  const size_t have = in_end_ - in_begin_;
  if (in_) {
    const bool ours =
        in_.unique() && (state_ == State::kHead || state_ == State::kLinger || head_buffer_);
    if (have == 0) {
      in_begin_ = in_end_ = ReadPosition(ours ? 0 : RoundUp(in_end_) + base::kBufferPadding);
    } else if (ours && in_begin_ > 0 && in_.capacity() - in_end_ < kLeastRoom) {
      std::memmove(in_.data(), in_.data() + in_begin_, have);
      in_begin_ = 0;
      in_end_ = have;
    }
    if (in_end_ < in_.capacity() && in_.capacity() - in_end_ >= kLeastRoom) return true;
  }
  const size_t position = ReadPosition(0);
  base::BufferRef fresh = base::AcquireBuffer(std::max(receive_bytes_, position + have * 2));
  if (!fresh) return false;
  if (have > 0) std::memcpy(fresh.data() + position, in_.data() + in_begin_, have);
  if (state_ != State::kHead && state_ != State::kLinger && !head_buffer_) {
    head_buffer_ = std::move(in_);
  }
  in_ = std::move(fresh);
  in_begin_ = position;
  in_end_ = position + have;
  return true;
}

void Http1Connection::OnRead(size_t n) {
  last_activity_ms_ = CoarseNowMs();
  switch (state_) {
    case State::kBody:
      body_got_ += n;
      break;
    case State::kDiscard:
      discard_left_ -= n;
      break;
    case State::kBusy:
      in_end_ += n;
      if (RequestNotify()) return;
      FinishExchange();
      break;
    case State::kHead:
    case State::kChunks:
    case State::kLinger:
      in_end_ += n;
      break;
  }
  Process();
}

void Http1Connection::OnReadEnd(bool eof) {
  if (state_ != State::kBusy) return Close();
  eof_ = true;
  if (write_handed_) {
    // A client that only closed its sending side still gets the rest of its reply.
    if (!eof) Close();
    return;
  }
  if (RequestNotify()) return FireDisconnect();
  FinishExchange();
  Process();
}

void Http1Connection::OnReadable() {
  // A deferred reply lies where bytes would be read to; they are looked for after it.
  if (deferred_size_ != 0) return;
  if (HasReplied()) {
    FinishExchange();
    if (closed()) return;
    in_.Reset();
    in_begin_ = in_end_ = 0;
  }
  if (!EnsureRoom()) return Close();
  const ssize_t n = Receive(in_.data() + in_end_, in_.capacity() - in_end_);
  if (n > 0) return OnRead(static_cast<size_t>(n));
  if (n < 0) return OnReadEnd(true);
  WaitForBytes();
}

void Http1Connection::OnDrain() {
  if (state_ == State::kBusy) {
    if (write_handed_ || RequestNotify()) return;
    FinishExchange();
  }
  if (state_ == State::kHead && !has_unparsed()) Close();
}

void Http1Connection::OnSweep(uint64_t now_ms) {
  const auto passed = [now_ms](uint64_t since, std::chrono::milliseconds limit) {
    return now_ms > since && now_ms - since > static_cast<uint64_t>(limit.count());
  };
  const HttpServerOptions& options = core_.options;
  // A server that drains waits for requests, not for clients that have stopped sending one.
  const auto receiving = [&](std::chrono::milliseconds limit) {
    return group().draining() ? std::min(limit, options.drain_receive_timeout) : limit;
  };
  if (HasReplied()) {
    FinishExchange();
    Process();
    if (closed()) return;
  }
  switch (state_) {
    case State::kHead:
      if (head_since_ms_ != 0 && passed(head_since_ms_, receiving(options.header_timeout)))
        return Close();
      if (head_since_ms_ != 0) return;
      if (passed(last_activity_ms_, options.idle_timeout)) return Close();
      if ((IsTooOld() || group().is_crowded(now_ms)) && passed(last_activity_ms_, kQuiet))
        return Close();
      return;
    case State::kBody:
    case State::kDiscard:
    case State::kChunks:
      if (passed(last_activity_ms_, receiving(options.body_timeout)) || IsBodyTooSlow(now_ms)) {
        EndSlowBody();
      }
      return;
    case State::kBusy:
      if (write_armed() && passed(last_activity_ms_, options.write_timeout)) Close();
      return;
    case State::kLinger:
      if (passed(last_activity_ms_, std::chrono::milliseconds(kLingerMs))) Close();
      return;
  }
}

uint64_t Http1Connection::ArrivedBodyBytes() const {
  return state_ == State::kDiscard ? body_size_ - discard_left_
         : state_ == State::kBody  ? body_got_
                                   : body_size_;
}

bool Http1Connection::IsBodyTooSlow(uint64_t now_ms) {
  const auto window_ms = static_cast<uint64_t>(core_.options.body_window.count());
  if (window_since_ms_ != 0 && now_ms - window_since_ms_ < window_ms) return false;
  const uint64_t arrived = ArrivedBodyBytes();
  const uint64_t brought = arrived - std::exchange(window_bytes_, arrived);
  const bool is_first = std::exchange(window_since_ms_, now_ms) == 0;
  return !is_first && brought < core_.options.min_body_bytes_per_s * window_ms / 1000;
}

// The read into the body goes on to be armed, so nothing but the end can follow.
void Http1Connection::EndSlowBody() {
  constexpr std::string_view kReply =
      "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: 51\r\n"
      "Connection: close\r\n\r\n{\"error\":\"the request body is arriving too slowly\"}";
  const iovec text{const_cast<char*>(kReply.data()), kReply.size()};
  Send(&text, 1);
  Close();
}

}  // namespace nereid::http1
