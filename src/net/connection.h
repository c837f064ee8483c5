// SPDX-License-Identifier: Apache-2.0
// What HTTP/1.1 and HTTP/2 connections share: one socket on one reactor, reads into the caller's
// buffer, gathered writes from any thread, lifetime, timeouts and graceful stop. For this module's
// own files.
//
// A protocol derives from Connection, starts with ArmRead and is told what happens by the virtual
// functions. It is created on its reactor with `new`, handed to nobody, and deletes itself there
// when it is closed, no read or write wait is pending and every Hold has been released.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <sys/uio.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "net/reactor.h"
#include "net/tls_channel.h"

namespace nereid::net {

class Connection;

// The connections of one server: counts them, drains them, sweeps their timeouts. Thread-safe.
class ConnectionGroup {
 public:
  explicit ConnectionGroup(ReactorPool& pool);
  ~ConnectionGroup();  // no connection is left

  size_t count() const { return count_.load(); }
  bool draining() const { return draining_.load(); }
  // Whether a connection came lately that is one of the last the process can have.
  bool is_crowded(uint64_t now_ms) const { return now_ms < crowded_until_ms_.load(); }
  // Asks every connection, also those to come, to end after what it is doing (Connection::OnDrain).
  void Drain();
  // Closes every connection. What holds one (an unanswered request) keeps it in count().
  void CloseAll();
  // False when connections were left at the deadline. Not from a reactor.
  bool WaitUntilEmpty(base::TimePoint deadline);
  // CloseAll, waits until all are gone, and stops the sweeps. Once, before destruction; not from a
  // reactor.
  void Shutdown();

 private:
  friend class Connection;
  // Touched on its own reactor only.
  struct Shard {
    Connection* first = nullptr;
    std::unique_ptr<Timer> sweep;
    bool is_sweeping = false;
    uint64_t now_ms = 0;  // as of the last sweep, or of the last connection that came
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

// Confined to its reactor, but for the calls marked otherwise.
class Connection : private Watched {
 public:
  Reactor& reactor() const { return reactor_; }
  ConnectionGroup& group() const { return group_; }
  // Among the last that the process can have: only health is answered, so that it can be asked
  // always.
  bool is_crowded() const { return is_crowded_; }

  // Keeps the object (not the socket's life) until Release. Any thread.
  void Hold() { references_.fetch_add(1); }
  void Release();

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 protected:
  // Registers with the group; the socket is non-blocking. With `tls`, whose handshake is done, all
  // bytes pass through it.
  Connection(Reactor& reactor, ConnectionGroup& group, base::UniqueFd socket,
             std::unique_ptr<TlsChannel> tls = nullptr);
  virtual ~Connection();

  // Reads once into `into`, which stays valid until OnRead; never calls it from inside.
  void ArmRead(std::byte* into, size_t size);
  // Waits for bytes without holding a buffer; OnReadable follows.
  void ArmReadable();
  // The protocol has read the socket itself and found nothing: ArmReadable is to wait for more.
  void NoteDrained() { may_read_ = false; }
  // Takes what has arrived, without waiting: the bytes taken, 0 when there are none, -1 at the end
  // of the stream or when the connection is broken. After OnReadable.
  ssize_t Receive(std::byte* into, size_t size);
  // The same into several places, `size` bytes together, one after the other; of a plain
  // connection.
  ssize_t ReceiveInto(const iovec* parts, size_t count, size_t size);
  // Whether bytes do not pass through TLS.
  bool is_plain() const { return tls_ == nullptr; }
  bool read_armed() const { return read_armed_; }

  // Sends what the socket takes without waiting: the bytes taken (0 when it is full), or -1 when
  // the connection is broken. Any thread; the caller sees to it that there is one sender at a time,
  // and holds the connection when the thread is not its reactor's.
  ssize_t Send(const iovec* parts, size_t count);
  // OnWritable follows once the socket takes bytes again.
  void ArmWritable();
  bool write_armed() const { return write_armed_; }

  // No more reads or writes; pending ones end without a call. The object lives on while it is held.
  // Idempotent.
  void Close();
  bool closed() const { return closed_; }
  // Gives the socket up to another connection; this one is closed then, without OnClosed. Nothing
  // is armed.
  base::UniqueFd TakeSocket();
  // Ends the sending side, so that the client sees the end of the last reply. Any thread.
  void FinishSending();

  // Milliseconds of a coarse clock that is free to read (moves about once a second).
  uint64_t CoarseNowMs() const;

  // After ArmRead: n > 0 bytes arrived.
  virtual void OnRead(size_t) {}
  // After ArmRead: the client closed its side (eof) or the connection broke. The protocol calls
  // Close when it is done with it.
  virtual void OnReadEnd(bool /*eof*/) {}
  // After ArmReadable: there are bytes, or there is an end, for Receive to find.
  virtual void OnReadable() {}
  virtual void OnWritable() {}
  // End when idle.
  virtual void OnDrain() = 0;
  // About once a second: close when a timeout has passed.
  virtual void OnSweep(uint64_t now_ms) = 0;
  // Close was called; the last chance on the reactor before references decide.
  virtual void OnClosed() {}

 private:
  friend class ConnectionGroup;
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
  // Looks again in this pass of the loop, for what need not wait for an event.
  void LookSoon();
  void OnSoon();
  // What is armed and may be possible.
  void DeliverReady();
  void DeliverRead();
  // One try to read, without waiting: as Receive, but 0 is the end of the stream and kNothing
  // nothing.
  ssize_t TryRead(std::byte* into, size_t size);
  bool MayRead() const;

  Reactor& reactor_;
  ConnectionGroup& group_;
  base::UniqueFd socket_;
  const int fd_;
  const bool is_crowded_;
  bool closed_ = false;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool soon_queued_ = false;
  // Events tell of changes only, so what they said is kept until a try finds otherwise.
  bool may_read_ = true;
  bool may_write_ = true;
  bool has_ended_ = false;          // nothing more will be announced
  std::byte* read_into_ = nullptr;  // of the armed read; null: only wait
  size_t read_size_ = 0;
  std::atomic<uint32_t> references_{1};  // the open connection itself counts as one
  Connection* next_ = nullptr;           // in its shard
  Connection* previous_ = nullptr;
  DestroyTask destroy_{*this};

  const std::unique_ptr<TlsChannel> tls_;  // null: plain
  SoonTask soon_{*this};
};

}  // namespace nereid::net
