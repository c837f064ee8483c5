// SPDX-License-Identifier: Apache-2.0
#include "http1/body_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/buffer_budget.h"

namespace nereid::http1 {
namespace {

constexpr size_t kDiscardBytes = (256 << 10) - base::kBufferOverhead;
constexpr size_t kFirstChunkedBytes = (16 << 10) - base::kBufferOverhead;

}  // namespace

void BodyReceiver::Begin() {
  request_.body = {};
  request_.body_size = 0;
  request_.body_truncated = leaves_rest_ = has_overflowed_ = is_over_budget_ = false;
  got_ = wanted_ = 0;
  discard_left_ = 0;
}

void BodyReceiver::SetPlan(const HttpBodyPlan& plan) {
  plan_ = plan;
  const size_t past = plan.split % base::kBufferAlignment;
  const bool is_aligned = plan.split == HttpBodyPlan::kNoSplit || past == 0;
  offset_ = is_aligned ? 0 : base::kBufferAlignment - past;
}

void BodyReceiver::Leave(uint64_t length) {
  request_.body_size = length;
  request_.body_truncated = leaves_rest_ = true;
}

bool BodyReceiver::Expect(uint64_t length) {
  request_.body_size = length;
  if (length <= plan_.max_bytes) {
    wanted_ = length;
  } else {
    request_.body_truncated = true;
    if (plan_.split != HttpBodyPlan::kNoSplit) {
      wanted_ = std::min<uint64_t>({plan_.split, plan_.max_bytes, length});
    }
    discard_left_ = length - wanted_;
    if (discard_left_ > max_discard_bytes_) {
      discard_left_ = 0;
      leaves_rest_ = true;
    }
  }
  if (wanted_ > 0 && !request_.body_buffer) {
    request_.body_buffer = base::AcquireArrivalBuffer(BufferBytes(wanted_));
  }
  return wanted_ == 0 || request_.body_buffer;
}

void BodyReceiver::Charge() {
  if (budget_ == nullptr || is_over_budget_) return;
  is_over_budget_ = !base::ChargeBuffer(request_.body_buffer, *budget_, offset_ + got_);
}

size_t BodyReceiver::Take(std::string_view bytes) {
  const size_t kept = std::min(wanted_ - got_, bytes.size());
  if (kept > 0) {
    std::memcpy(request_.body_buffer.data() + offset_ + got_, bytes.data(), kept);
    got_ += kept;
    Charge();
  }
  const size_t thrown = std::min<uint64_t>(discard_left_, bytes.size() - kept);
  discard_left_ -= thrown;
  return kept + thrown;
}

std::span<std::byte> BodyReceiver::Room() {
  if (got_ < wanted_) return {request_.body_buffer.data() + offset_ + got_, wanted_ - got_};
  if (!discard_buffer_) discard_buffer_ = base::AcquireBuffer(kDiscardBytes);
  if (!discard_buffer_) return {};
  return {discard_buffer_.data(), std::min<uint64_t>(discard_left_, kDiscardBytes)};
}

void BodyReceiver::Received(size_t size) {
  if (got_ < wanted_) {
    got_ += size;
    Charge();
  } else {
    discard_left_ -= size;
  }
}

void BodyReceiver::OnChunkBytes(std::string_view bytes) {
  request_.body_size += bytes.size();
  if (request_.body_size > plan_.max_bytes) {
    request_.body_truncated = true;
    request_.body_buffer.Reset();
    got_ = 0;
    has_overflowed_ |= request_.body_size - plan_.max_bytes > max_discard_bytes_;
    return;
  }
  base::BufferRef& buffer = request_.body_buffer;
  const size_t needed = got_ + bytes.size();
  if (!buffer || buffer.capacity() - offset_ < needed) {
    const size_t target = std::max({needed, got_ * 2, kFirstChunkedBytes});
    base::BufferRef larger = base::AcquireBuffer(BufferBytes(std::min(target, plan_.max_bytes)));
    if (!larger) {
      has_overflowed_ = true;
      return;
    }
    if (got_ > 0) std::memcpy(larger.data() + offset_, buffer.data() + offset_, got_);
    buffer = std::move(larger);
  }
  std::memcpy(buffer.data() + offset_ + got_, bytes.data(), bytes.size());
  got_ = needed;
  Charge();
}

uint64_t BodyReceiver::arrived() const {
  const size_t missing = wanted_ - std::min(wanted_, got_);
  return request_.body_size - missing - discard_left_;
}

void BodyReceiver::Finish() {
  if (got_ > 0) {
    request_.body = {reinterpret_cast<const char*>(request_.body_buffer.data()) + offset_, got_};
  }
  Release();
}

}  // namespace nereid::http1
