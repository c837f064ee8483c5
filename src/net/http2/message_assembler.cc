// SPDX-License-Identifier: Apache-2.0
#include "http2/message_assembler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/buffer_budget.h"

namespace nereid::http2 {
namespace {

// Messages from this size on are always counted.
constexpr size_t kChargedFrom = 16 << 10;

size_t DeclaredSize(const uint8_t* prefix) {
  return size_t{prefix[1]} << 24 | size_t{prefix[2]} << 16 | size_t{prefix[3]} << 8 | prefix[4];
}

}  // namespace

inline void MessageAssembler::Start() {
  const size_t size = DeclaredSize(prefix_);
  const IncompleteMessages& others = *connection_;
  if (prefix_[0] > 1) {
    return Refuse(GrpcStatus::kInternal, fmt::format("Invalid compression flag {}", prefix_[0]));
  }
  if (prefix_[0] == 1 && !may_be_compressed_) {
    return Refuse(GrpcStatus::kInternal, "A compressed message without a grpc-encoding");
  }
  if (size > others.max_message_bytes) {
    return Refuse(GrpcStatus::kResourceExhausted,
                  fmt::format("Received message larger than max ({} vs. {})", size,
                              others.max_message_bytes));
  }
  if (others.budget != nullptr && size > others.budget->limit()) {
    return Refuse(GrpcStatus::kResourceExhausted,
                  fmt::format("Received message of {} bytes, which is larger than all that "
                              "--max-request-memory allows ({})",
                              size, others.budget->limit()));
  }
  if (others.count > 0 && others.bytes + size > others.max_bytes) {
    return Refuse(GrpcStatus::kResourceExhausted,
                  "Too many large messages at once on this connection");
  }
  if (size > 0) {
    // The end of the message is aligned. The tensor that usually ends it is then aligned, too, if
    // its size is a multiple of the alignment.
    offset_ = (base::kBufferAlignment - size % base::kBufferAlignment) % base::kBufferAlignment;
    buffer_ = base::AcquireArrivalBuffer(size + offset_);
    if (!buffer_) return Refuse(GrpcStatus::kResourceExhausted, "No memory for the message");
  }
  size_ = size;
  filled_ = 0;
  is_progress_known_ = false;
  connection_->bytes += size;
  ++connection_->count;
}

size_t MessageAssembler::Take(const uint8_t* data, size_t size) {
  size_t taken = 0;
  if (prefix_filled_ < kGrpcPrefixBytes) {
    if (prefix_filled_ == 0 && size >= kGrpcPrefixBytes) [[likely]] {
      std::memcpy(prefix_, data, kGrpcPrefixBytes);
      taken = kGrpcPrefixBytes;
    } else {
      taken = std::min(size, kGrpcPrefixBytes - prefix_filled_);
      std::memcpy(prefix_ + prefix_filled_, data, taken);
    }
    prefix_filled_ = static_cast<uint8_t>(prefix_filled_ + taken);
    if (prefix_filled_ < kGrpcPrefixBytes) return taken;
    Start();
    if (state_ == State::kRefused) return taken;
  }
  if (const size_t step = std::min(size - taken, size_ - filled_); step > 0) {
    std::byte* const place = buffer_.data() + offset_ + filled_;
    const auto* const from = reinterpret_cast<const std::byte*>(data + taken);
    // A planned read may have put the bytes here, or near here.
    if (from != place) std::memmove(place, from, step);
    filled_ += step;
    taken += step;
  }
  if (filled_ == size_) state_ = State::kComplete;
  // What arrives in one piece and is small is limited by the number of requests.
  if (state_ != State::kComplete || size_ >= kChargedFrom) Charge();
  return taken;
}

void MessageAssembler::Charge() {
  if (connection_->budget == nullptr || !buffer_) return;
  if (base::ChargeBuffer(buffer_, *connection_->budget, offset_ + filled_)) return;
  Drop();
  Refuse(GrpcStatus::kResourceExhausted,
         "The server holds as many bytes of requests as --max-request-memory allows");
}

void MessageAssembler::Refuse(GrpcStatus status, std::string text) {
  error_ = {status, std::move(text)};
  state_ = State::kRefused;
  prefix_filled_ = 0;
}

MessageAssembler::Message MessageAssembler::TakeMessage() {
  Message message{std::move(buffer_), {}, prefix_[0] == 1};
  if (size_ > 0) {
    message.bytes = {reinterpret_cast<const char*>(message.buffer.data() + offset_), size_};
  }
  Drop();
  return message;
}

void MessageAssembler::Drop() {
  if (prefix_filled_ == kGrpcPrefixBytes) {
    connection_->bytes -= size_;
    --connection_->count;
  }
  prefix_filled_ = 0;
  size_ = 0;
  filled_ = 0;
  buffer_.Reset();
  if (state_ == State::kComplete) state_ = State::kIncomplete;
}

std::span<std::byte> MessageAssembler::Room() const {
  if (prefix_filled_ < kGrpcPrefixBytes || filled_ == size_) return {};
  return {buffer_.data() + offset_ + filled_, size_ - filled_};
}

std::optional<size_t> MessageAssembler::Progress(bool is_fair) {
  if (prefix_filled_ < kGrpcPrefixBytes) return std::nullopt;
  const size_t before = std::exchange(seen_, filled_);
  const bool is_known = std::exchange(is_progress_known_, is_fair);
  if (!is_known || !is_fair) return std::nullopt;
  return filled_ - before;
}

void MessageAssembler::Recycle() {
  connection_ = nullptr;
  error_.reset();
  buffer_.Reset();
  size_ = 0;
  filled_ = 0;
  prefix_filled_ = 0;
  state_ = State::kIncomplete;
  may_be_compressed_ = false;
  is_progress_known_ = false;
}

}  // namespace nereid::http2
