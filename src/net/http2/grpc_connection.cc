// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_connection.h"

#include <utility>

namespace nereid::http2 {

void GrpcConnection::Start(const Place& place, base::UniqueFd socket,
                           std::unique_ptr<net::TlsChannel> tls) {
  auto* const connection = new GrpcConnection(place, std::move(socket), std::move(tls));
  connection->is_tick_due_ = true;
  connection->last_read_ms_ = connection->CoarseNowMs();
  connection->is_drain_due_ = place.group.draining();
  connection->ReactorTurn();
}

GrpcConnection::GrpcConnection(const Place& place, base::UniqueFd socket,
                               std::unique_ptr<net::TlsChannel> tls)
    : net::Connection(place.reactor, place.group, std::move(socket), std::move(tls)),
      options_(place.options),
      workers_(place.workers),
      session_(std::make_unique<GrpcSession>(place.options, place.handler, *this, place.reactor)),
      timer_(place.reactor) {}

GrpcConnection::~GrpcConnection() = default;

void GrpcConnection::Submit(GrpcMessagePtr order) {
  // The answers of unary calls leave one by one, in the order in which they come: several at once
  // would leave in an order of nghttp2's.
  const bool is_of_stream = order->orders_ == GrpcMessage::kSend;
  GrpcMessage* const pushed = order.release();
  GrpcMessage* head = outbox_.load(std::memory_order_relaxed);
  do {
    pushed->next_message_ = head;
  } while (!outbox_.compare_exchange_weak(head, pushed, std::memory_order_release,
                                          std::memory_order_relaxed));
  if (reactor().IsCurrent()) {
    if (state_.fetch_or(kHasOrders, std::memory_order_acq_rel) & kTaken) return;
    if (std::exchange(flush_queued_, true)) return;
    Hold();
    reactor().RunAfterRound(flush_);
    return;
  }
  Hold();  // the order may be the last that kept the connection
  if (is_of_stream && pace_.IsInBurst(base::NowNs())) {
    if (!(state_.fetch_or(kHasOrders, std::memory_order_acq_rel) & kTaken) &&
        !is_burst_queued_.exchange(true, std::memory_order_acq_rel)) {
      Hold();
      reactor().Post(burst_);
    }
  } else if (TryTake(kHasOrders)) {
    LetGo();
  }
  Release();
}

bool GrpcConnection::TryTake(uint32_t bits) {
  return !(state_.fetch_or(kTaken | bits, std::memory_order_acq_rel) & kTaken);
}

void GrpcConnection::LetGo() {
  for (;;) {
    uint32_t state = state_.load(std::memory_order_acquire);
    if (state & kHasOrders) {
      state_.fetch_and(~kHasOrders, std::memory_order_acq_rel);
      ServeOrders();
    } else if (state & kReactorWaits) {
      state_.fetch_and(~kReactorWaits, std::memory_order_acq_rel);
      if (!reactor().IsCurrent()) {
        Hold();
        reactor().Post(handover_);
        return;
      }
      WorkOnReactor();
    } else if (state_.compare_exchange_strong(state, 0, std::memory_order_acq_rel)) {
      return;
    }
  }
}

void GrpcConnection::Handover::Run() {
  connection.WorkOnReactor();
  connection.LetGo();
  connection.Release();
}

void GrpcConnection::Flush::Run() {
  connection.flush_queued_ = false;
  if (connection.TryTake(0)) connection.LetGo();
  connection.Release();
}

void GrpcConnection::Burst::Run() {
  // Before the orders are taken: whoever comes after that must queue this again.
  connection.is_burst_queued_.store(false, std::memory_order_release);
  if (connection.TryTake(0)) connection.LetGo();
  connection.Release();
}

void GrpcConnection::ReactorTurn() {
  Hold();
  if (TryTake(kReactorWaits)) LetGo();
  Release();
}

void GrpcConnection::OnReadable() {
  received_ = base::AcquireBuffer(kReceiveBytes);
  if (!received_) return Close();
  const ssize_t n = Receive(received_.data(), kReceiveBytes);
  if (n < 0) return Close();
  if (n == 0) return WaitForBytes();
  received_size_ = static_cast<size_t>(n);
  last_read_ms_ = CoarseNowMs();
  ReactorTurn();
}

void GrpcConnection::WaitForBytes() {
  received_.Reset();
  ArmReadable();
}

void GrpcConnection::OnWritable() {
  can_write_ = true;
  ReactorTurn();
}

void GrpcConnection::OnDrain() {
  is_drain_due_ = true;
  ReactorTurn();
}

void GrpcConnection::OnSweep(uint64_t now_ms) {
  if (now_ms - checked_ms_ >= static_cast<uint64_t>(options_.message_window.count())) {
    checked_ms_ = now_ms;
    is_check_due_ = true;
    ReactorTurn();
    if (closed()) return;
  }
  if ((is_crowded() || group().is_crowded(now_ms)) && now_ms - last_read_ms_ > kCrowdedIdleMs) {
    // Ends the connection unless it has calls.
    is_drain_due_ = true;
    ReactorTurn();
    if (closed()) return;
  }
  if (!is_write_blocked_.load(std::memory_order_relaxed)) {
    blocked_since_ms_ = 0;
    return;
  }
  if (blocked_since_ms_ == 0) blocked_since_ms_ = now_ms;
  const auto limit_ms = static_cast<uint64_t>(options_.write_timeout.count());
  if (now_ms - blocked_since_ms_ >= limit_ms) Close();
}

void GrpcConnection::OnClosed() { ReactorTurn(); }

void GrpcConnection::WorkOnReactor() {
  if (closed()) return Shut();
  if (std::exchange(can_write_, false)) {
    is_write_blocked_.store(false, std::memory_order_relaxed);
    blocked_since_ms_ = 0;
  }
  session_->BeginTurn();
  if (received_size_ > 0) ReadSocket();
  if (std::exchange(is_drain_due_, false)) session_->StartDrain();
  if (std::exchange(is_check_due_, false)) session_->CheckProgress();
  if (std::exchange(is_tick_due_, false)) {
    bool dead = false;
    session_->Tick(base::NowNs(), &dead);
    if (dead) is_finished_ = true;
  }
  ServeOrders();
  if (is_finished_) return Close();
  if (is_write_blocked_.load(std::memory_order_relaxed)) ArmWritable();
  if (!read_armed()) WaitForBytes();
  ArmTimer();
}

void GrpcConnection::ReadSocket() {
  const size_t n = std::exchange(received_size_, 0);
  auto read = session_->Receive(reinterpret_cast<const uint8_t*>(received_.data()), n)
                  ? (n < kReceiveBytes ? Read::kAll : Read::kMore)
                  : Read::kFailed;
  for (int reads = 1; read == Read::kMore && reads < kReadsPerTurn; ++reads) {
    // More than the buffer took: a large message is on its way.
    WriteOut();
    read = ReadOn();
  }
  if (read != Read::kFailed) return;
  is_finished_ = true;
  WriteOut();  // tells the client why, where there is a reason
}

GrpcConnection::Read GrpcConnection::ReadOn() {
  Http2Scatter plan;
  if (is_plain() && session_->PlanReceive(plan, {received_.data(), kReceiveBytes})) {
    const ssize_t n = ReceiveInto(plan.parts.data(), plan.count, plan.bytes);
    if (n == 0) return Read::kAll;
    if (n < 0 || !session_->ReceivePlanned(plan, static_cast<size_t>(n))) return Read::kFailed;
    return static_cast<size_t>(n) < plan.bytes ? Read::kAll : Read::kMore;
  }
  const base::BufferRef buffer = base::AcquireBuffer(kBulkReceiveBytes);
  if (!buffer) return Read::kFailed;
  const ssize_t n = Receive(buffer.data(), kBulkReceiveBytes);
  if (n == 0) return Read::kAll;
  if (n < 0 ||
      !session_->Receive(reinterpret_cast<const uint8_t*>(buffer.data()), static_cast<size_t>(n))) {
    return Read::kFailed;
  }
  return static_cast<size_t>(n) < kBulkReceiveBytes ? Read::kAll : Read::kMore;
}

void GrpcConnection::ServeOrders() {
  GrpcMessage* newest = outbox_.exchange(nullptr, std::memory_order_acquire);
  GrpcMessage* oldest = nullptr;
  while (newest != nullptr) {
    GrpcMessage* const next = newest->next_message_;
    newest->next_message_ = oldest;
    oldest = newest;
    newest = next;
  }
  while (oldest != nullptr) {
    GrpcMessagePtr order(oldest);
    oldest = oldest->next_message_;
    GrpcCall* const call = order->call_;
    if (session_ != nullptr) {
      session_->Apply(std::move(order));
    } else if (order->orders_ & GrpcMessage::kReturn) {
      GrpcSession::EndAway(*call);
    }
    order.reset();
    call->Unreference();
  }
  WriteOut();
}

void GrpcConnection::WriteOut() {
  if (session_ == nullptr) return;
  bool failed = false;
  while (!failed && !is_write_blocked_.load(std::memory_order_relaxed)) {
    if (output_.empty() && !session_->Fill(output_)) failed = true;
    if (output_.empty()) break;
    const ssize_t n = Send(output_.pieces().data(), output_.pieces().size());
    if (n < 0) {
      failed = true;
    } else if (n == 0) {
      is_write_blocked_.store(true, std::memory_order_relaxed);
    } else {
      output_.Advance(static_cast<size_t>(n));
    }
  }
  session_->DeliverWaiting();
  if (failed || (output_.empty() && (session_->is_condemned() || session_->IsOver()))) {
    is_finished_ = true;
  }
  const bool needs_reactor = is_finished_ || is_write_blocked_.load(std::memory_order_relaxed);
  if (needs_reactor && !reactor().IsCurrent()) {
    state_.fetch_or(kReactorWaits, std::memory_order_relaxed);
  }
  if (needs_reactor && reactor().IsCurrent() && !is_finished_ && !closed()) ArmWritable();
}

void GrpcConnection::ArmTimer() {
  const uint64_t due_ns = session_->next_due_ns();
  if (due_ns >= timer_due_ns_) return;
  timer_due_ns_ = due_ns;
  const uint64_t now_ns = base::NowNs();
  constexpr uint64_t kLongest = uint64_t{86'400} * 1'000'000'000;  // looked at again then
  const uint64_t wait_ns = due_ns > now_ns ? std::min(due_ns - now_ns, kLongest) : 0;
  timer_.Start(std::chrono::nanoseconds(wait_ns), [this] {
    timer_due_ns_ = kNever;
    is_tick_due_ = true;
    ReactorTurn();
  });
}

void GrpcConnection::Shut() {
  if (session_ == nullptr) return;
  timer_.Cancel();
  is_finished_ = true;
  session_->CancelAll();
  session_.reset();
  output_.Clear();
}

}  // namespace nereid::http2
