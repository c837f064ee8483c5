// SPDX-License-Identifier: Apache-2.0
#include "http1/request_receiver.h"

#include <cstring>
#include <utility>

#include "base/buffer_budget.h"
#include "base/clock.h"

namespace nereid::http1 {
namespace {

constexpr HttpRefusal kNoMemory{503, "out of memory for the request body"};
constexpr HttpRefusal kOverBudget{
    503, "the server holds as many bytes of requests as --max-request-memory allows"};
constexpr HttpRefusal kNeverFits{
    413, "the request body is larger than all that --max-request-memory allows"};
// A smaller part of a head is not worth counting: every connection may have as much.
constexpr size_t kFreeHeadBytes = 4 << 10;

}  // namespace

RequestReceiver::RequestReceiver(HttpRequest& request, HttpHandler& handler,
                                 const HttpServerOptions& options)
    : request_(request),
      handler_(handler),
      max_header_bytes_(options.max_header_bytes),
      max_body_bytes_(options.max_body_bytes),
      budget_(options.received_bytes),
      body_(request, options.max_discard_bytes, options.received_bytes) {}

RequestReceiver::Step RequestReceiver::Advance() {
  switch (state_) {
    case State::kHead:
      return StepHead();
    case State::kBody:
      return StepBody();
    case State::kChunks:
      return StepChunks();
    case State::kWhole:
      return Step::kRequest;
    case State::kIgnored:
      break;
  }
  buffer_.ConsumeAll();
  return Step::kRead;
}

std::span<std::byte> RequestReceiver::Room() {
  return state_ == State::kBody ? body_.Room() : buffer_.Room();
}

void RequestReceiver::Received(size_t size) {
  if (state_ == State::kBody) {
    body_.Received(size);
  } else {
    buffer_.Received(size);
  }
}

void RequestReceiver::Finish() {
  request_.body = {};
  request_.body_buffer.Reset();
  buffer_.Unpin();
  state_ = State::kHead;
}

RequestReceiver::Step RequestReceiver::StepHead() {
  while (scanner_.size() == 0 && buffer_.bytes().starts_with("\r\n")) {
    buffer_.Consume(2);  // RFC 9112 2.2: blank lines before a request are skipped
  }
  if (buffer_.empty()) {
    is_in_head_ = false;
    return Step::kIdle;
  }
  if (!std::exchange(is_in_head_, true)) request_.start_ns = base::NowNs();
  const std::string_view bytes = buffer_.bytes();
  if (scanner_.size() == 0) {
    if (const size_t size = HttpHeadParser::ReadPlain(bytes, max_header_bytes_, request_.head)) {
      buffer_.Consume(size);
      return BeginBody();
    }
  }
  const auto found = scanner_.Scan(bytes);
  const size_t seen = found == HttpHeadScanner::State::kComplete ? scanner_.size() : bytes.size();
  if (found == HttpHeadScanner::State::kBad) return Refuse({400, "malformed HTTP request"});
  if (seen > max_header_bytes_) return Refuse({431, "request head is too large"});
  if (found == HttpHeadScanner::State::kIncomplete) {
    is_head_split_ = true;
    if (!HasRoomForHead()) return Refuse(kOverBudget);
    return Step::kRead;
  }
  parser_.emplace(request_.head, max_header_bytes_);
  const HttpRefusal refusal = parser_->ParseHead(bytes.substr(0, seen));
  buffer_.Consume(seen);
  scanner_.Reset();
  if (refusal.status != 0) return Refuse(refusal);
  return BeginBody();
}

bool RequestReceiver::HasRoomForHead() const {
  return budget_ == nullptr || buffer_.size() <= kFreeHeadBytes ||
         base::ChargeBuffer(buffer_.memory(), *budget_, buffer_.size());
}

RequestReceiver::Step RequestReceiver::BeginBody() {
  const HttpHead& head = request_.head;
  is_in_head_ = false;
  buffer_.Pin();
  // A head that arrives at once begins and ends at the same time.
  request_.received_ns = std::exchange(is_head_split_, false) ? base::NowNs() : request_.start_ns;
  body_.Begin();
  const uint64_t length = head.content_length().value_or(0);
  if (length == 0 && !head.chunked()) {
    state_ = State::kWhole;
    return Step::kRequest;
  }
  buffer_.ExpectSize(length, head.chunked());
  body_.SetPlan(handler_.PlanBody(head, max_body_bytes_));
  if (body_.plan().is_unwanted) {
    body_.Leave(length);
    return FinishBody();
  }
  const bool is_awaited = head.expect_continue() && buffer_.empty();
  if (!head.chunked()) {
    const Step step = BeginBodyOfLength(length);
    return is_awaited && step == Step::kRead ? Step::kContinue : step;
  }
  state_ = State::kChunks;
  return is_awaited ? Step::kContinue : StepChunks();
}

RequestReceiver::Step RequestReceiver::BeginBodyOfLength(uint64_t length) {
  const HttpBodyPlan& plan = body_.plan();
  if (length <= plan.max_bytes) {
    if (buffer_.size() >= length) return PlaceWholeBody(length);
    if (!body_.CanFit(length)) return Refuse(kNeverFits);
    request_.body_buffer = handler_.BodyBuffer(request_.head, plan, body_.BufferBytes(length));
  }
  if (!body_.Expect(length)) return Refuse(kNoMemory);
  state_ = State::kBody;
  return StepBody();
}

// The body stays where it is if its split is aligned there, or is moved if nothing follows it.
RequestReceiver::Step RequestReceiver::PlaceWholeBody(size_t length) {
  const size_t split = body_.plan().split;
  const std::string_view bytes = buffer_.bytes();
  bool is_placed = true;
  if (split < length) {
    buffer_.ExpectAligned(static_cast<size_t>(bytes.data() - request_.head.method_text().data()) +
                          split);
    is_placed = buffer_.Align(split, bytes.size() == length);
  }
  if (is_placed) {
    request_.body_buffer = buffer_.memory();
    request_.body = buffer_.bytes().substr(0, length);
  } else {
    request_.body_buffer = base::AcquireBuffer(body_.BufferBytes(length));
    if (!request_.body_buffer) return Refuse(kNoMemory);
    auto* to = reinterpret_cast<char*>(request_.body_buffer.data()) + body_.offset();
    std::memcpy(to, bytes.data(), length);
    request_.body = {to, length};
  }
  request_.body_size = length;
  buffer_.Consume(length);
  state_ = State::kWhole;
  return Step::kRequest;
}

RequestReceiver::Step RequestReceiver::StepBody() {
  buffer_.Consume(body_.Take(buffer_.bytes()));
  if (body_.is_over_budget()) return Refuse(kOverBudget);
  if (body_.is_whole()) return FinishBody();
  return body_.Room().empty() ? Refuse({503, "out of memory"}) : Step::kRead;
}

RequestReceiver::Step RequestReceiver::StepChunks() {
  const auto progress = parser_->ParseChunks(buffer_.bytes(), body_);
  buffer_.Consume(progress.consumed);
  if (progress.refusal.status != 0) return Refuse(progress.refusal);
  if (body_.is_over_budget()) return Refuse(kOverBudget);
  if (body_.has_overflowed()) return Refuse({413, "request body is too large"});
  if (progress.done) return FinishBody();
  // The rest is one incomplete line or trailer section.
  if (buffer_.size() >= ReceiveBuffer::kLargeBytes) {
    return Refuse({400, "chunk header is too large"});
  }
  return Step::kRead;
}

RequestReceiver::Step RequestReceiver::FinishBody() {
  body_.Finish();
  request_.received_ns = base::NowNs();
  state_ = State::kWhole;
  return Step::kRequest;
}

RequestReceiver::Step RequestReceiver::Refuse(HttpRefusal refusal) {
  refusal_ = refusal;
  is_in_head_ = false;
  // A request that was refused counts as one of HTTP/1.1, whatever was read of its head.
  request_.head.method_ = HttpMethod::kOther;
  request_.head.version_ = 11;
  body_.Release();
  state_ = State::kWhole;
  return Step::kRefused;
}

}  // namespace nereid::http1
