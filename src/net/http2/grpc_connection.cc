// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_connection.h"

#include <utility>

namespace nereid::http2 {

void GrpcConnection::Start(const Place& place, net::Accepted accepted,
                           std::unique_ptr<net::TlsChannel> tls) {
  auto* const connection = new GrpcConnection(place, std::move(accepted), std::move(tls));
  if (connection->closed()) return connection->Release();  // the socket could not be watched
  connection->ReactorTurn(place.group.draining() ? kTick | kDrain : kTick);
}

GrpcConnection::GrpcConnection(const Place& place, net::Accepted accepted,
                               std::unique_ptr<net::TlsChannel> tls)
    : net::Connection(place.reactor, place.group, std::move(accepted), std::move(tls)),
      place_(place),
      session_(std::make_unique<GrpcSession>(place.options, place.handler, *this, output_,
                                             base::NowNs())),
      timer_(place.reactor),
      watch_(place.options, CoarseNowMs()) {}

GrpcConnection::~GrpcConnection() = default;

void GrpcConnection::Submit(GrpcMessagePtr message) {
  // The responses of unary calls are sent one by one, in the order in which they come: nghttp2
  // would reorder several at once.
  const bool is_of_stream = (message->order.kinds & ~GrpcOrder::kCredit) == GrpcOrder::kSend;
  const bool is_on_reactor = reactor().IsCurrent();
  // The order may hold the last reference to the connection.
  if (!is_on_reactor) Hold();
  orders_.Push(*message.release());
  if (is_on_reactor) {
    if (turn_.NoteOrders() || std::exchange(is_flush_queued_, true)) return;
    Hold();
    return reactor().RunAfterRound(flush_);
  }
  if (is_of_stream && bursts_.IsInBurst(base::NowNs())) {
    if (!turn_.NoteOrders() && !is_burst_queued_.exchange(true)) {
      Hold();
      reactor().Post(burst_);
    }
  } else if (turn_.TryTakeForOrders()) {
    LetGo();
  }
  Release();
}

void GrpcConnection::LetGo() {
  for (;;) {
    switch (turn_.LetGo()) {
      case ConnectionTurn::Next::kFree:
        return;
      case ConnectionTurn::Next::kOrders:
        ServeOrders();
        break;
      case ConnectionTurn::Next::kReactor:
        if (!reactor().IsCurrent()) {
          Hold();
          return reactor().Post(handover_);
        }
        WorkOnReactor();
        break;
    }
  }
}

void GrpcConnection::OnHandover() {
  WorkOnReactor();
  LetGo();
  Release();
}

void GrpcConnection::OnFlush() {
  is_flush_queued_ = false;
  if (turn_.TryTake()) LetGo();
  Release();
}

void GrpcConnection::OnBurst() {
  // Cleared before the orders are taken: a thread that comes later must queue the task again.
  is_burst_queued_.store(false);
  if (turn_.TryTake()) LetGo();
  Release();
}

void GrpcConnection::ReactorTurn(uint8_t due) {
  due_ |= due;
  Hold();
  if (turn_.TryTakeForReactor()) LetGo();
  Release();
}

void GrpcConnection::OnReadable() {
  received_ = base::AcquireBuffer(kReceiveBytes);
  if (!received_) return Close();
  const ssize_t n = Receive(received_.data(), kReceiveBytes);
  if (n < 0) return Close();
  if (n == 0) return WaitForBytes();
  received_size_ = static_cast<size_t>(n);
  watch_.NoteRead(CoarseNowMs());
  ReactorTurn();
}

void GrpcConnection::WaitForBytes() {
  received_.Reset();
  ArmReadable();
}

void GrpcConnection::OnWritable() { ReactorTurn(kWrite); }

void GrpcConnection::OnDrain() { ReactorTurn(kDrain); }

void GrpcConnection::OnSweep(uint64_t now_ms) {
  const base::Budget* const received = place_.options.received_bytes;
  if (watch_.IsCheckDue(now_ms, received != nullptr && received->is_scarce())) ReactorTurn(kCheck);
  const bool is_blocked = is_write_blocked_.load(std::memory_order_relaxed);
  if (!closed() && (is_blocked || unsent_.amount() > 0)) ReactorTurn(kWeigh);
  // A connection without calls ends when it is drained.
  const bool is_wanted = is_crowded() || group().is_crowded(now_ms);
  if (!closed() && is_wanted && watch_.IsQuiet(now_ms)) ReactorTurn(kDrain);
  if (closed()) return;
  if (watch_.IsStuck(now_ms, is_write_blocked_.load(std::memory_order_relaxed))) Close();
}

// An output that the socket does not take at once is mostly gone a moment later, so that looking
// once a second is enough.
void GrpcConnection::WeighUnsent() {
  base::Budget* const budget = place_.options.unsent_bytes;
  if (budget == nullptr) return;
  const bool is_blocked = is_write_blocked_.load(std::memory_order_relaxed);
  if (!unsent_.Resize(*budget, is_blocked ? session_->unsent_bytes() : 0)) is_finished_ = true;
}

void GrpcConnection::OnClosed() { ReactorTurn(); }

void GrpcConnection::WorkOnReactor() {
  if (closed()) return Shut();
  const uint8_t due = std::exchange(due_, 0);
  if (due & kWrite) {
    is_write_blocked_.store(false, std::memory_order_relaxed);
    watch_.NoteWritable();
  }
  session_->BeginTurn();
  if (received_size_ > 0) ReadSocket();
  if (due & kDrain) session_->StartDrain(base::NowNs());
  if (due & kCheck) session_->CheckProgress(watch_.window());
  if (due & kWeigh) WeighUnsent();
  if (due & kTick) {
    timer_due_ns_ = kNever;
    if (!session_->Tick(base::NowNs())) is_finished_ = true;
  }
  ServeOrders();
  if (is_finished_) return Close();
  if (is_write_blocked_.load(std::memory_order_relaxed)) ArmWritable();
  if (!read_armed()) WaitForBytes();
  ArmTimer();
}

void GrpcConnection::ReadSocket() {
  const size_t n = std::exchange(received_size_, 0);
  const uint64_t begin_ns = base::NowNs();
  auto read = session_->Receive(reinterpret_cast<const uint8_t*>(received_.data()), n, begin_ns)
                  ? (n < kReceiveBytes ? Read::kAll : Read::kMore)
                  : Read::kFailed;
  for (int reads = 1; read == Read::kMore && reads < kReadsPerTurn; ++reads) {
    // More bytes than the buffer took: a large message is in progress, or there are many calls,
    // after some of which other connections have their turn.
    if (base::NowNs() - begin_ns > kTurnNs) return;
    WriteOut();
    read = ReadOn();
  }
  if (read != Read::kFailed) return;
  is_finished_ = true;
  WriteOut();  // tells the client the reason, if there is one
}

GrpcConnection::Read GrpcConnection::ReadOn() {
  Http2Scatter plan;
  if (is_plain() && session_->PlanReceive(plan, {received_.data(), kReceiveBytes})) {
    const ssize_t n = ReceiveInto(plan.parts.data(), plan.count, plan.bytes);
    if (n == 0) return Read::kAll;
    if (n < 0 || !session_->ReceivePlanned(plan, static_cast<size_t>(n), base::NowNs()))
      return Read::kFailed;
    return static_cast<size_t>(n) < plan.bytes ? Read::kAll : Read::kMore;
  }
  const base::BufferRef buffer = base::AcquireBuffer(kBulkReceiveBytes);
  if (!buffer) return Read::kFailed;
  const ssize_t n = Receive(buffer.data(), kBulkReceiveBytes);
  if (n == 0) return Read::kAll;
  if (n < 0 || !session_->Receive(reinterpret_cast<const uint8_t*>(buffer.data()),
                                  static_cast<size_t>(n), base::NowNs())) {
    return Read::kFailed;
  }
  return static_cast<size_t>(n) < kBulkReceiveBytes ? Read::kAll : Read::kMore;
}

void GrpcConnection::ServeOrders() {
  base::Queue<GrpcMessage> orders = orders_.TakeAll();
  while (GrpcMessage* const next = orders.Pop()) {
    GrpcMessagePtr message(next);
    GrpcStream* const stream = message->order.stream;
    if (session_ != nullptr) {
      session_->Apply(std::move(message));
    } else if (message->order.kinds & GrpcOrder::kReturn) {
      stream->ReportReturned();
    }
    message.reset();
    stream->Unreference();
  }
  WriteOut();
}

void GrpcConnection::WriteOut() {
  if (session_ == nullptr) return;
  bool failed = false;
  while (!failed && !is_write_blocked_.load(std::memory_order_relaxed)) {
    if (output_.empty() && !session_->Fill()) failed = true;
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
  const bool is_blocked = is_write_blocked_.load(std::memory_order_relaxed);
  if (!reactor().IsCurrent()) {
    const bool needs_timer = session_->next_due_ns() < timer_due_ns_;
    if (is_finished_ || is_blocked || needs_timer) turn_.CallReactor();
  } else if (is_blocked && !is_finished_ && !closed()) {
    ArmWritable();
  }
}

void GrpcConnection::ArmTimer() {
  const uint64_t due_ns = session_->next_due_ns();
  if (due_ns >= timer_due_ns_) return;
  timer_due_ns_ = due_ns;
  const uint64_t now_ns = base::NowNs();
  constexpr uint64_t kMaxWaitNs = uint64_t{86'400} * 1'000'000'000;  // then checked again
  const uint64_t wait_ns = due_ns > now_ns ? std::min(due_ns - now_ns, kMaxWaitNs) : 0;
  timer_.Start(std::chrono::nanoseconds(wait_ns), [this] { ReactorTurn(kTick); });
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
