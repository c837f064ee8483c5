// SPDX-License-Identifier: Apache-2.0
// The common base of HTTP/1.1 and HTTP/2 connections: one socket on one reactor, reads into the
// caller's buffer, gathered writes from any thread, lifetime, timeouts and graceful stop. For this
// module's own files.
//
// A protocol derives from Connection, starts with ArmRead and is notified by the virtual functions.
// A connection is created on its reactor with `new`, has no owner, and deletes itself there when it
// is closed, no read or write wait is pending and every Hold has been released.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/uio.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "net/connection_budget.h"
#include "net/reactor.h"
#include "net/tls_channel.h"

namespace nereid::net {

class Connection;

// The connections of one server: counts them, drains them, checks their timeouts. Thread-safe.
class ConnectionGroup {
 public:
  explicit ConnectionGroup(ReactorPool& pool);
  ~ConnectionGroup();  // REQUIRES: no connection is left

  size_t count() const { return count_.load(); }
  bool draining() const { return draining_.load(); }
  // Whether one of the last connections that the process can have was accepted recently.
  bool is_crowded(uint64_t now_ms) const { return now_ms < crowded_until_ms_.load(); }
  // Asks every connection, including future ones, to end after its current work
  // (Connection::OnDrain).
  void Drain();
  // Closes every connection. Those that are held (by a request in progress) stay in count().
  void CloseAll();
  // Returns false if connections were left at the deadline. Not from a reactor.
  bool WaitUntilEmpty(base::TimePoint deadline);
  // Calls CloseAll, waits until all are gone, and stops the sweeps. Once, before destruction; not
  // from a reactor.
  void Shutdown();

 private:
  friend class Connection;
  // Confined to its reactor.
  struct Shard {
    Connection* first = nullptr;
    std::unique_ptr<Timer> sweep;
    bool is_sweeping = false;
    uint64_t now_ms = 0;  // as of the last sweep or the last new connection
  };
  void Add(Connection& connection);
  void Remove(Connection& connection);
  void Gone();
  void ScheduleSweep(Reactor& reactor);
  void ForEachReactor(const std::function<void(Reactor&, Shard&)>& fn);

  ReactorPool& pool_;
  std::vector<Shard> shards_;
  std::atomic<size_t> count_{0};
  std::atomic<bool> draining_{false};
  std::atomic<uint64_t> crowded_until_ms_{0};
  base::Mutex mutex_;
  base::CondVar empty_;
};

// Confined to its reactor, except where stated otherwise.
class Connection : private Watched {
 public:
  Reactor& reactor() const { return reactor_; }
  ConnectionGroup& group() const { return group_; }
  // Whether this is among the last connections that the process can have. Only health requests are
  // served on it, so that they always work.
  bool is_crowded() const { return is_crowded_; }
  // Returns the client's address without its port: "10.0.0.7", "::1", or "unix:uid=1000" for a Unix
  // socket. Empty if the client has gone. Any thread.
  std::string PeerAddress() const;
  // What the client's certificate says; null if it has shown none. Any thread.
  const PeerIdentity* peer_identity() const { return tls_ == nullptr ? nullptr : tls_->peer(); }

  // Keeps the object (but not the socket open) until Release. Any thread.
  void Hold() { references_.fetch_add(1); }
  void Release();

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 protected:
  // Registers with the group; the socket is non-blocking. With `tls`, whose handshake is done, all
  // bytes pass through TLS.
  Connection(Reactor& reactor, ConnectionGroup& group, Accepted accepted,
             std::unique_ptr<TlsChannel> tls = nullptr);
  virtual ~Connection();

  // Reads once into `into`, which must stay valid until OnRead; never calls OnRead from inside.
  void ArmRead(std::byte* into, size_t size);
  // Waits for bytes without a buffer; OnReadable follows.
  void ArmReadable();
  // Tells the connection that the protocol has emptied the socket itself, so that ArmReadable waits
  // for more.
  void NoteDrained() { may_read_ = false; }
  // Reads what has arrived, without waiting. Returns the number of bytes, 0 if there are none, -1
  // at the end of the stream or if the connection is broken. After OnReadable.
  ssize_t Receive(std::byte* into, size_t size);
  // Like Receive into several buffers of `size` bytes in total, one after the other. REQUIRES:
  // is_plain().
  ssize_t ReceiveInto(const iovec* parts, size_t count, size_t size);
  // Whether bytes do not pass through TLS.
  bool is_plain() const { return tls_ == nullptr; }
  bool read_armed() const { return read_armed_; }
  // What is known of the client without reading: that it sends no more, and that nothing reaches it
  // any more.
  bool client_has_ended() const { return client_ != Client::kSends; }
  bool client_has_gone() const { return client_ == Client::kHasGone; }

  // Sends what the socket takes without waiting. Returns the number of bytes (0 if the socket is
  // full), or -1 if the connection is broken. Any thread; the caller ensures that there is one
  // sender at a time, and holds the connection unless it is on its reactor.
  ssize_t Send(const iovec* parts, size_t count);
  // Requests OnWritable once the socket takes bytes again.
  void ArmWritable();
  bool write_armed() const { return write_armed_; }

  // Stops reads and writes; pending ones end without a call. The object lives on while it is held.
  // Idempotent.
  void Close();
  bool closed() const { return closed_; }
  // Passes the socket on to another connection; this one is then closed, without OnClosed.
  // REQUIRES: nothing is armed.
  Accepted TakeSocket();
  // Closes the sending side, so that the client sees the end of the last reply. Any thread.
  void FinishSending();

  // Returns the milliseconds of a coarse clock that costs nothing to read (updated about once a
  // second).
  uint64_t CoarseNowMs() const;

  // Called after ArmRead when n > 0 bytes arrived.
  virtual void OnRead(size_t) {}
  // Called after ArmRead when the client closed its side (eof) or the connection broke. The
  // protocol then calls Close when it is done.
  virtual void OnReadEnd(bool /*eof*/) {}
  // Called after ArmReadable when Receive will find bytes or the end.
  virtual void OnReadable() {}
  // Called while no read is armed when client_has_ended or client_has_gone becomes true.
  virtual void OnClientEnded() {}
  virtual void OnWritable() {}
  // Asks the connection to end when idle.
  virtual void OnDrain() = 0;
  // Called about once a second to close the connection if a timeout has passed.
  virtual void OnSweep(uint64_t now_ms) = 0;
  // Called after Close, for the last time on the reactor before the object may be destroyed.
  virtual void OnClosed() {}

 private:
  friend class ConnectionGroup;
  // What the events have told of the client.
  enum class Client : uint8_t {
    kSends,
    kHasEnded,  // no more bytes will be announced
    kHasGone,   // no room either
  };
  // Destroys the connection on its reactor, whichever thread released it last.
  struct DestroyTask final : Task {
    explicit DestroyTask(Connection& connection) : connection(connection) {}
    void Run() override { delete &connection; }
    Connection& connection;
  };
  // Calls OnSoon in the same pass of the reactor's loop.
  struct SoonTask final : Task {
    explicit SoonTask(Connection& connection) : connection(connection) {}
    void Run() override { connection.OnSoon(); }
    Connection& connection;
  };

  void OnEvents(uint32_t events) override;
  // Calls DeliverReady in this pass of the loop, for what need not wait for an event.
  void LookSoon();
  void OnSoon();
  // Performs what is armed and may be possible.
  void DeliverReady();
  void DeliverRead();
  // Tries to read once, without waiting: like Receive, but returns 0 at the end of the stream and
  // kNothing if there is nothing.
  ssize_t TryRead(std::byte* into, size_t size);
  bool MayRead() const;

  Reactor& reactor_;
  ConnectionGroup& group_;
  Accepted accepted_;
  const int fd_;
  const bool is_crowded_;
  bool closed_ = false;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool soon_queued_ = false;
  // Events report only changes, so their state is kept until an attempt fails.
  bool may_read_ = true;
  bool may_write_ = true;
  Client client_ = Client::kSends;
  std::byte* read_into_ = nullptr;  // buffer of the armed read; null: only wait
  size_t read_size_ = 0;
  std::atomic<uint32_t> references_{1};  // the open connection itself counts as one
  Connection* next_ = nullptr;           // in its shard
  Connection* previous_ = nullptr;
  DestroyTask destroy_{*this};

  const std::unique_ptr<TlsChannel> tls_;  // null: plain
  SoonTask soon_{*this};
};

}  // namespace nereid::net
