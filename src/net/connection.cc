// SPDX-License-Identifier: Apache-2.0
#include "net/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <latch>

#include "base/check.h"

namespace nereid::net {
namespace {

using Protocol = boost::asio::generic::stream_protocol;

constexpr std::chrono::milliseconds kSweepPeriod{1000};

uint64_t NowMs() { return base::NowNs() / 1'000'000; }

}  // namespace

ConnectionGroup::ConnectionGroup(ReactorPool& pool) : pool_(pool), shards_(pool.size()) {}

ConnectionGroup::~ConnectionGroup() { NEREID_CHECK(count() == 0); }

void ConnectionGroup::Add(Connection& connection) {
  Shard& shard = shards_[connection.reactor_.index()];
  connection.next_ = shard.first;
  if (shard.first != nullptr) shard.first->previous_ = &connection;
  shard.first = &connection;
  count_.fetch_add(1, std::memory_order_relaxed);
  shard.now_ms = NowMs();
  if (shard.sweep == nullptr) {
    shard.sweep = std::make_unique<Timer>(connection.reactor_);
    ScheduleSweep(connection.reactor_);
  }
}

void ConnectionGroup::Remove(Connection& connection) {
  Shard& shard = shards_[connection.reactor_.index()];
  if (connection.next_ != nullptr) connection.next_->previous_ = connection.previous_;
  if (connection.previous_ != nullptr) {
    connection.previous_->next_ = connection.next_;
  } else {
    shard.first = connection.next_;
  }
}

void ConnectionGroup::Gone() {
  base::MutexLock lock(mutex_);
  if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) empty_.NotifyAll();
}

void ConnectionGroup::ScheduleSweep(Reactor& reactor) {
  shards_[reactor.index()].sweep->Start(kSweepPeriod, [this, &reactor] {
    Shard& shard = shards_[reactor.index()];
    shard.now_ms = NowMs();
    for (Connection* c = shard.first; c != nullptr; c = c->next_) {
      if (!c->closed_) c->OnSweep(shard.now_ms);
    }
    ScheduleSweep(reactor);
  });
}

void ConnectionGroup::ForEachReactor(const std::function<void(Reactor&, Shard&)>& fn) {
  NEREID_CHECK(Reactor::Current() == nullptr);
  std::latch done(static_cast<std::ptrdiff_t>(pool_.size()));
  for (size_t i = 0; i < pool_.size(); ++i) {
    Reactor& reactor = pool_.reactor(i);
    reactor.Post([this, &reactor, &fn, &done] {
      fn(reactor, shards_[reactor.index()]);
      done.count_down();
    });
  }
  done.wait();
}

void ConnectionGroup::Drain() {
  draining_.store(true);
  ForEachReactor([](Reactor&, Shard& shard) {
    for (Connection* c = shard.first; c != nullptr; c = c->next_) {
      if (!c->closed_) c->OnDrain();
    }
  });
}

void ConnectionGroup::CloseAll() {
  ForEachReactor([](Reactor&, Shard& shard) {
    for (Connection* c = shard.first; c != nullptr; c = c->next_) c->Close();
  });
}

bool ConnectionGroup::WaitUntilEmpty(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  while (count() != 0) {
    if (!empty_.WaitUntil(mutex_, deadline)) return count() == 0;
  }
  return true;
}

void ConnectionGroup::Shutdown() {
  draining_.store(true);
  CloseAll();
  {
    base::MutexLock lock(mutex_);
    while (count() != 0) empty_.Wait(mutex_);
  }
  ForEachReactor([](Reactor&, Shard& shard) { shard.sweep.reset(); });
}

Connection::Connection(Reactor& reactor, ConnectionGroup& group, base::UniqueFd socket,
                       std::unique_ptr<TlsChannel> tls)
    : reactor_(reactor),
      group_(group),
      socket_(reactor.context().get_executor()),
      fd_(socket.get()),
      tls_(std::move(tls)) {
  reactor.AddConnection();
  boost::system::error_code error;
  socket_.assign(Protocol(AF_INET, 0), socket.get(), error);
  if (!error) {
    socket.Release();
  } else {
    closed_ = true;  // cannot be watched; the caller's first ArmRead finds it closed
  }
  group.Add(*this);
}

Connection::~Connection() {
  reactor_.RemoveConnection();
  group_.Remove(*this);
  boost::system::error_code ignored;
  socket_.close(ignored);
  group_.Gone();
}

void Connection::Release() {
  // Destroyed from the loop, never inside a call of its own.
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) reactor_.Post(destroy_);
}

void Connection::OperationEnded() {
  if (closed_ && !read_armed_ && !write_armed_) Release();
}

void Connection::ArmRead(std::byte* into, size_t size) {
  if (closed_) return;
  NEREID_CHECK(!read_armed_);
  read_armed_ = true;
  if (tls_ != nullptr) [[unlikely]] return ArmTlsRead(into, size);
  socket_.async_read_some(
      boost::asio::mutable_buffer(into, size),
      [this](const boost::system::error_code& error, size_t n) {
        read_armed_ = false;
        if (closed_) return OperationEnded();
        if (!error) return OnRead(n);
        if (error == boost::asio::error::operation_aborted) return OnReadCancelled();
        OnReadEnd(error == boost::asio::error::eof);
      });
}

void Connection::ArmReadable() {
  if (closed_) return;
  NEREID_CHECK(!read_armed_);
  read_armed_ = true;
  if (tls_ != nullptr) [[unlikely]] return ArmTlsRead(nullptr, 0);
  socket_.async_wait(boost::asio::socket_base::wait_read, [this](const boost::system::error_code& error) {
    read_armed_ = false;
    if (closed_) return OperationEnded();
    if (!error) return OnReadable();
    if (error == boost::asio::error::operation_aborted) return OnReadCancelled();
    OnReadEnd(false);
  });
}

void Connection::ArmTlsRead(std::byte* into, size_t size) {
  tls_into_ = into;
  tls_size_ = size;
  if (tls_->HasBuffered()) {
    reactor_.Post(tls_read_);
  } else {
    WaitForTlsBytes();
  }
}

void Connection::WaitForTlsBytes() {
  socket_.async_wait(boost::asio::socket_base::wait_read, [this](const boost::system::error_code& error) {
    if (closed_ || !error) return OnTlsBytes();
    read_armed_ = false;
    if (error == boost::asio::error::operation_aborted) return OnReadCancelled();
    OnReadEnd(false);
  });
}

void Connection::OnTlsBytes() {
  if (closed_) {
    read_armed_ = false;
    return OperationEnded();
  }
  if (tls_into_ == nullptr) {
    read_armed_ = false;
    return OnReadable();
  }
  const ssize_t n = tls_->Read(tls_into_, tls_size_);
  if (n == 0) return WaitForTlsBytes();
  read_armed_ = false;
  if (n > 0) return OnRead(static_cast<size_t>(n));
  OnReadEnd(n == TlsChannel::kEnd);
}

ssize_t Connection::Receive(std::byte* into, size_t size) {
  if (tls_ != nullptr) [[unlikely]] return std::max(tls_->Read(into, size), TlsChannel::kBroken);
  for (;;) {
    const ssize_t n = ::recv(fd_, into, size, MSG_DONTWAIT);
    if (n > 0) return n;
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
  }
}

void Connection::CancelRead() {
  NEREID_CHECK(!write_armed_);
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

ssize_t Connection::Send(const iovec* parts, size_t count) {
  if (tls_ != nullptr) [[unlikely]] return tls_->Write(parts, count);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = std::min<size_t>(count, IOV_MAX);
  for (;;) {
    const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

void Connection::ArmWritable() {
  if (closed_ || write_armed_) return;
  write_armed_ = true;
  socket_.async_wait(boost::asio::socket_base::wait_write, [this](const boost::system::error_code& error) {
    write_armed_ = false;
    if (closed_) return OperationEnded();
    if (!error) return OnWritable();
    if (error != boost::asio::error::operation_aborted) OnReadEnd(false);
  });
}

void Connection::FinishSending() {
  if (tls_ != nullptr) tls_->Finish();
  ::shutdown(fd_, SHUT_WR);
}

base::UniqueFd Connection::TakeSocket() {
  NEREID_CHECK(!read_armed_ && !write_armed_ && !closed_);
  closed_ = true;
  boost::system::error_code error;
  base::UniqueFd socket(socket_.release(error));
  OperationEnded();
  return socket;
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  OnClosed();
  if (tls_ != nullptr) tls_->Finish();
  // The descriptor itself is closed by the destructor: a holder may be sending at this moment.
  ::shutdown(fd_, SHUT_RDWR);
  boost::system::error_code ignored;
  socket_.cancel(ignored);
  OperationEnded();
}

uint64_t Connection::CoarseNowMs() const { return group_.shards_[reactor_.index()].now_ms; }

}  // namespace nereid::net
