// SPDX-License-Identifier: Apache-2.0
#include "net/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <latch>

#include "base/check.h"
#include "net/unix_socket.h"

namespace nereid::net {
namespace {

constexpr std::chrono::milliseconds kSweepPeriod{1000};
// After one of the last possible connections was accepted, idle ones are closed for this long.
constexpr uint64_t kCrowdedMs = 5'000;

// TryRead returns this if there is nothing to read now.
constexpr ssize_t kNothing = -1;
constexpr ssize_t kBroken = -2;

uint64_t NowMs() { return base::NowNs() / 1'000'000; }

}  // namespace

ConnectionGroup::ConnectionGroup(ReactorPool& pool) : pool_(pool), shards_(pool.size()) {}

ConnectionGroup::~ConnectionGroup() { NEREID_CHECK(count() == 0); }

void ConnectionGroup::Add(Connection& connection) {
  Shard& shard = shards_[connection.reactor_.index()];
  connection.next_ = shard.first;
  if (shard.first != nullptr) shard.first->previous_ = &connection;
  shard.first = &connection;
  count_.fetch_add(1);
  shard.now_ms = NowMs();
  if (shard.sweep == nullptr) shard.sweep = std::make_unique<Timer>(connection.reactor_);
  if (!shard.is_sweeping) ScheduleSweep(connection.reactor_);
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
  if (count_.fetch_sub(1) == 1) empty_.NotifyAll();
}

void ConnectionGroup::ScheduleSweep(Reactor& reactor) {
  Shard& shard = shards_[reactor.index()];
  // A reactor without connections sleeps until there is one.
  shard.is_sweeping = shard.first != nullptr;
  if (!shard.is_sweeping) return;
  shard.sweep->Start(kSweepPeriod, [this, &reactor, &shard] {
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

Connection::Connection(Reactor& reactor, ConnectionGroup& group, Accepted accepted,
                       std::unique_ptr<TlsChannel> tls)
    : reactor_(reactor),
      group_(group),
      accepted_(std::move(accepted)),
      fd_(accepted_.socket.get()),
      is_crowded_(accepted_.grant.is_extra() || DescriptorsLeft(fd_) < ReservedDescriptors()),
      tls_(std::move(tls)) {
  reactor.AddConnection();
  if (is_crowded_ && !accepted_.grant.is_of_address()) {
    group.crowded_until_ms_.store(NowMs() + kCrowdedMs);
  }
  // If the socket cannot be watched, the caller's first ArmRead finds it closed.
  closed_ = !reactor.Watch(fd_, *this);
  group.Add(*this);
}

Connection::~Connection() {
  reactor_.RemoveConnection();
  group_.Remove(*this);
  accepted_ = {};
  group_.Gone();
}

void Connection::Release() {
  // Destroyed from the loop, never inside one of its own calls.
  if (references_.fetch_sub(1) == 1) reactor_.Post(destroy_);
}

void Connection::OnEvents(uint32_t events) {
  if (closed_) return;
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) may_read_ = true;
  if ((events & EPOLLRDHUP) && client_ == Client::kSends) client_ = Client::kHasEnded;
  if (events & (EPOLLHUP | EPOLLERR)) client_ = Client::kHasGone;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) may_write_ = true;
  DeliverReady();
  if (client_has_ended() && !closed_ && !read_armed_) OnClientEnded();
}

void Connection::LookSoon() {
  if (std::exchange(soon_queued_, true)) return;
  Hold();
  reactor_.RunSoon(soon_);
}

void Connection::OnSoon() {
  soon_queued_ = false;
  if (!closed_) DeliverReady();
  Release();
}

void Connection::DeliverReady() {
  if (write_armed_ && may_write_) {
    // Cleared before the attempt: room that appears after it is announced again.
    write_armed_ = may_write_ = false;
    OnWritable();
  }
  if (!closed_ && read_armed_ && MayRead()) DeliverRead();
}

void Connection::DeliverRead() {
  if (read_into_ == nullptr) {
    read_armed_ = false;
    return OnReadable();
  }
  const ssize_t n = TryRead(read_into_, read_size_);
  if (n == kNothing) return;  // still armed
  read_armed_ = false;
  if (n > 0) return OnRead(static_cast<size_t>(n));
  OnReadEnd(n == 0);
}

bool Connection::MayRead() const { return may_read_ || (tls_ != nullptr && tls_->HasBuffered()); }

ssize_t Connection::TryRead(std::byte* into, size_t size) {
  if (tls_ != nullptr) [[unlikely]] {
    const ssize_t n = tls_->Read(into, size);
    if (n > 0) return n;
    if (n < 0) return n == TlsChannel::kEnd ? 0 : kBroken;
    may_read_ = false;
    return kNothing;
  }
  for (;;) {
    const ssize_t n = ::recv(fd_, into, size, MSG_DONTWAIT);
    // A short read took everything there was, unless the end of the stream is still to come.
    if (n > 0 && static_cast<size_t>(n) < size) may_read_ = client_has_ended();
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return kBroken;
    may_read_ = false;
    return kNothing;
  }
}

void Connection::ArmRead(std::byte* into, size_t size) {
  if (closed_) return;
  NEREID_CHECK(!read_armed_);
  read_armed_ = true;
  read_into_ = into;
  read_size_ = size;
  if (MayRead()) LookSoon();
}

void Connection::ArmReadable() { ArmRead(nullptr, 0); }

ssize_t Connection::Receive(std::byte* into, size_t size) {
  const ssize_t n = TryRead(into, size);
  if (n == kNothing) return 0;
  return n > 0 ? n : -1;
}

ssize_t Connection::ReceiveInto(const iovec* parts, size_t count, size_t size) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t n = ::recvmsg(fd_, &message, MSG_DONTWAIT);
    if (n > 0 && static_cast<size_t>(n) < size) may_read_ = client_has_ended();
    if (n > 0) return n;
    if (n == 0) return -1;
    if (errno == EINTR) continue;
    may_read_ = false;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  }
}

ssize_t Connection::Send(const iovec* parts, size_t count) {
  if (tls_ != nullptr) [[unlikely]]
    return tls_->Write(parts, count);
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
  if (may_write_) LookSoon();
}

void Connection::FinishSending() {
  if (tls_ != nullptr) tls_->Finish();
  ::shutdown(fd_, SHUT_WR);
}

Accepted Connection::TakeSocket() {
  NEREID_CHECK(!read_armed_ && !write_armed_ && !closed_);
  closed_ = true;
  reactor_.Unwatch(fd_);
  Accepted accepted = std::move(accepted_);
  Release();
  return accepted;
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  OnClosed();
  if (tls_ != nullptr) tls_->Finish();
  // The destructor closes the descriptor, because a holder may be sending at this moment.
  ::shutdown(fd_, SHUT_RDWR);
  reactor_.Unwatch(fd_);
  read_armed_ = write_armed_ = false;
  Release();
}

std::string Connection::PeerAddress() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(),
              text.size());
  } else if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text.data(),
              text.size());
  } else {
    ucred user{};
    socklen_t user_size = sizeof user;
    if (::getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &user, &user_size) != 0) return "unix";
    return "unix:uid=" + std::to_string(user.uid);
  }
  return text.data();
}

uint64_t Connection::CoarseNowMs() const { return group_.shards_[reactor_.index()].now_ms; }

}  // namespace nereid::net
