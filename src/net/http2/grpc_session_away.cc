// SPDX-License-Identifier: Apache-2.0
// Messages on their way from the connection to their calls. Most are handed over where they are
// received. What would keep the reactor from its other connections is done by a worker: inflating,
// and taking in a message that its call says is heavy. Of each connection one message at a time is
// with a worker, so that connections have their turns there, too; its other such messages stand in
// line, and none leaves the line while messages in service exceed the connection's budget. A worker
// brings back what it did as an order (GrpcMessage::kReturn). Until then the call hears nothing
// else of its input, its cancellation or its end, and messages of its stream wait.
#include <algorithm>
#include <utility>

#include "http2/grpc_connection.h"
#include "http2/grpc_session.h"
#include "net/compression.h"

namespace nereid::http2 {
namespace {

// What a compressed message may grow to: up to the first whatever its size, beyond that only so
// many times its size. Real tensors stay below.
constexpr size_t kFreeInflation = size_t{64} << 20;
constexpr size_t kMaxInflation = 200;
// Inflated at once if it is no larger, which makes at most a thousand times as much of it, and as
// long as this much was not made in one turn.
constexpr size_t kInflatedHere = 1 << 10;
constexpr size_t kInflatedPerTurn = size_t{1} << 20;
// Nobody asks whether smaller messages are heavy.
constexpr size_t kHeavyFrom = size_t{64} << 10;

base::Result<net::BufferView> Inflate(std::string_view message, size_t max_message_bytes) {
  net::DecompressOptions limits;
  limits.max_bytes =
      std::min(max_message_bytes, std::max(kFreeInflation, kMaxInflation * message.size()));
  limits.limit_hint = "";
  return net::Decompress(message, limits);
}

}  // namespace

void GrpcSession::Deliver(GrpcCall& call, base::BufferRef buffer, std::string_view message,
                          bool is_compressed) {
  call.held_bytes_ += message.size();
  held_bytes_ += message.size();
  const bool is_free = call.away_ == GrpcCall::Away::kNo && !HasWaiting(call) &&
                       call.unsent_bytes() <= options_.max_stream_backlog_bytes;
  if (is_free && !is_compressed && message.size() < kHeavyFrom) [[likely]] {
    call.events_->OnMessage(std::move(buffer), message);
    return;
  }
  call.waiting_.push_back({std::move(buffer), message, is_compressed});
  waiting_bytes_ += message.size();
  ++waiting_messages_;
  if (is_free) Continue(call);
}

bool GrpcSession::HasWaiting(const GrpcCall& call) {
  return call.next_waiting_ < call.waiting_.size();
}

GrpcCall::Waiting GrpcSession::TakeWaiting(GrpcCall& call) {
  GrpcCall::Waiting entry = std::move(call.waiting_[call.next_waiting_++]);
  if (!HasWaiting(call)) {
    call.waiting_.clear();
    call.next_waiting_ = 0;
  }
  waiting_bytes_ -= entry.message.size();
  --waiting_messages_;
  return entry;
}

void GrpcSession::DropWaiting(GrpcCall& call) {
  while (HasWaiting(call)) TakeWaiting(call);
}

// Whether a worker is to have the first message that waits.
bool GrpcSession::NeedsWorker(GrpcCall& call) {
  const GrpcCall::Waiting& next = call.waiting_[call.next_waiting_];
  if (next.is_compressed) {
    return next.message.size() > kInflatedHere || inflated_bytes_ > kInflatedPerTurn;
  }
  if (next.message.size() < kHeavyFrom || !call.events_->IsHeavy(next.message)) return false;
  call.is_heavy_ = true;
  return true;
}

// What became of a compressed message comes before what arrived behind it.
void GrpcSession::PutFirst(GrpcCall& call, net::BufferView plain) {
  call.held_bytes_ += plain.data.size();
  held_bytes_ += plain.data.size();
  waiting_bytes_ += plain.data.size();
  ++waiting_messages_;
  call.waiting_.insert(call.waiting_.begin() + static_cast<std::ptrdiff_t>(call.next_waiting_),
                       {std::move(plain.buffer), plain.data, false});
}

void GrpcSession::Continue(GrpcCall& call) {
  if (call.away_ != GrpcCall::Away::kNo || call.is_rejected_) return;
  while (HasWaiting(call) && !call.finished_) {
    if (call.unsent_bytes() > options_.max_stream_backlog_bytes) return;
    if (NeedsWorker(call)) return StandInLine(call);
    GrpcCall::Waiting next = TakeWaiting(call);
    if (next.is_compressed) {
      base::Result<net::BufferView> plain = Inflate(next.message, options_.max_message_bytes);
      if (!plain.ok()) return Fail(call, GrpcStatus::kInternal, plain.status().message());
      inflated_bytes_ += plain->data.size();
      ReleaseHeld(call, next.message.size());
      PutFirst(call, std::move(*plain));
    } else {
      call.events_->OnMessage(std::move(next.buffer), next.message);
    }
  }
  if (call.half_closed_ && !call.half_close_reported_ && !call.finished_) EndInput(call);
}

void GrpcSession::EndInput(GrpcCall& call) {
  call.half_close_reported_ = true;
  if (call.is_heavy_) return StandInLine(call);
  call.events_->OnHalfClose();
}

void GrpcSession::StandInLine(GrpcCall& call) {
  call.away_ = GrpcCall::Away::kInLine;
  line_.push_back(call.stream_id_);
  MoveLine();
}

void GrpcSession::MoveLine() {
  while (!has_away_ && !line_.empty() &&
         held_bytes_ - waiting_bytes_ <= options_.connection_budget_bytes) {
    GrpcCall* const call = FindCall(line_.front());
    line_.erase(line_.begin());
    if (call == nullptr || call->away_ != GrpcCall::Away::kInLine) continue;
    call->away_ = GrpcCall::Away::kNo;
    if (call->finished_ || call->stream_closed_) continue;
    SendAway(*call);
  }
}

void GrpcSession::SendAway(GrpcCall& call) {
  has_away_ = true;
  call.away_ = GrpcCall::Away::kGone;
  if (!HasWaiting(call)) {
    connection_.workers().Post([call = GrpcCallRef(call)] {
      call->events_->OnHalfClose();
      call->Order(GrpcMessage::Create(), GrpcMessage::kReturn);
    });
    return;
  }
  GrpcCall::Waiting next = TakeWaiting(call);
  if (!next.is_compressed) {
    connection_.workers().Post([call = GrpcCallRef(call), next = std::move(next)]() mutable {
      call->events_->OnMessage(std::move(next.buffer), next.message);
      call->Order(GrpcMessage::Create(), GrpcMessage::kReturn);
    });
    return;
  }
  // Taken off what is held here, since what comes back is counted anew.
  ReleaseHeld(call, next.message.size());
  connection_.workers().Post([call = GrpcCallRef(call), next = std::move(next),
                              limit = options_.max_message_bytes]() mutable {
    base::Result<net::BufferView> plain = Inflate(next.message, limit);
    next.buffer.Reset();
    GrpcMessagePtr order = GrpcMessage::Create();
    if (!plain.ok()) {
      order->status_code_ = static_cast<int>(GrpcStatus::kInternal);
      order->status_text_ = plain.status().message();
      return call->Order(std::move(order), GrpcMessage::kReturn | GrpcMessage::kAbort);
    }
    order->is_inflated_ = true;
    order->Refer(reinterpret_cast<const std::byte*>(plain->data.data()), plain->data.size(),
                 std::move(plain->buffer));
    call->Order(std::move(order), GrpcMessage::kReturn);
  });
}

void GrpcSession::EndAway(GrpcCall& call) {
  call.away_ = GrpcCall::Away::kNo;
  if (call.is_cancelled()) ReportCancel(call);
  if (call.stream_closed_ && call.events_ != nullptr) {
    std::exchange(call.events_, nullptr)->OnDone();
  }
}

void GrpcSession::ApplyReturn(GrpcCall& call, GrpcMessage& order) {
  has_away_ = false;
  EndAway(call);
  const bool goes_on =
      !call.stream_closed_ && !call.finished_ && !(order.orders_ & GrpcMessage::kAbort);
  if (goes_on && order.is_inflated_) {
    net::BufferView plain;
    if (order.size() > 0) {
      plain = {order.owners_.front(),
               {reinterpret_cast<const char*>(order.segment(0).data), order.size()}};
    }
    PutFirst(call, std::move(plain));
  }
  if (goes_on) Continue(call);
  MoveLine();
}

}  // namespace nereid::http2
