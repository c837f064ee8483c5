// SPDX-License-Identifier: Apache-2.0
// One gRPC connection. It moves bytes and orders between its socket, its reactor and these parts:
//
//   ConnectionTurn    which thread has the connection
//   Inbox             orders for its calls, from any thread
//   GrpcSession       the protocol
//   Http2Output       pending output
//   ConnectionWatch   the timeouts
//
// At any time at most one thread has the connection; only that thread touches the session and the
// output and writes to the socket. No thread waits for it. A thread with an order for a call puts
// it into the inbox and tries to take the connection. If it succeeds, it carries out every order
// and writes; otherwise the thread that has the connection does so before it releases it. Orders
// that come faster than they can be written one by one, as from a model with many responses, are
// left to the reactor, which handles several at a time. The reactor takes the connection to read;
// if another thread has it, that thread passes it to the reactor instead of releasing it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/inbox.h"
#include "http2/call_host.h"
#include "http2/connection_turn.h"
#include "http2/connection_watch.h"
#include "http2/grpc_server.h"
#include "http2/grpc_session.h"
#include "http2/http2_output.h"
#include "net/burst_detector.h"
#include "net/connection.h"
#include "net/reactor.h"

namespace nereid::http2 {

// Confined to its reactor or to the thread that has it, as stated below; the functions of CallHost
// are thread-safe.
class GrpcConnection final : public net::Connection, public CallHost {
 public:
  // What a connection depends on; all of it outlives the connection.
  struct Place {
    const GrpcServerOptions& options;
    GrpcHandler& handler;
    net::ConnectionGroup& group;
    net::Reactor& reactor;
    base::TaskPool& workers;
  };
  // Starts a connection, on the reactor. The connection deletes itself. `tls` is null for a plain
  // one.
  static void Start(const Place& place, net::Accepted accepted,
                    std::unique_ptr<net::TlsChannel> tls);

  // CallHost
  void Submit(GrpcMessagePtr message) override;
  void Hold() override { net::Connection::Hold(); }
  void Release() override { net::Connection::Release(); }
  bool is_crowded() const override { return net::Connection::is_crowded(); }
  std::string PeerAddress() const override { return net::Connection::PeerAddress(); }
  const net::PeerIdentity* peer_identity() const override {
    return net::Connection::peer_identity();
  }
  base::TaskPool& workers() const override { return place_.workers; }

 private:
  static constexpr size_t kBulkReceiveBytes = (256 << 10) - base::kBufferOverhead;
  static constexpr int kReadsPerTurn = 16;
  static constexpr uint64_t kTurnNs = 200'000;
  static constexpr size_t kReceiveBytes = (16 << 10) - base::kBufferOverhead;
  // What the reactor must do as soon as it has the connection.
  enum Due : uint8_t { kTick = 1, kDrain = 2, kCheck = 4, kWrite = 8, kWeigh = 16 };

  // A call of this connection that can be queued on its reactor. The connection is held meanwhile.
  template <void (GrpcConnection::*kCall)()>
  struct CallTask final : net::Task {
    explicit CallTask(GrpcConnection& connection) : connection(connection) {}
    void Run() override { (connection.*kCall)(); }
    GrpcConnection& connection;
  };

  GrpcConnection(const Place& place, net::Accepted accepted, std::unique_ptr<net::TlsChannel> tls);
  ~GrpcConnection() override;

  // Handles all notes, and releases the connection.
  void LetGo();
  // Does what is due, on the reactor, now or as soon as it has the connection.
  void ReactorTurn(uint8_t due = 0);

  // REQUIRES for the following: the calling thread has the connection; for WorkOnReactor it is the
  // reactor.
  void WorkOnReactor();
  void ReadSocket();
  // The outcome of a read: the buffer is full, everything was read, or an end.
  enum class Read { kMore, kAll, kFailed };
  Read ReadOn();
  void ServeOrders();
  void WriteOut();
  void Shut();
  void ArmTimer();

  // Another thread has passed the connection to the reactor.
  void OnHandover();
  // Called after the reactor's round: responses that were finished together are sent together.
  void OnFlush();
  // Called when other threads have produced a burst of orders.
  void OnBurst();

  // Frees the read buffer: an idle connection takes little memory, and the next one to read gets
  // the buffer while it is in the processor's cache.
  void WaitForBytes();
  // Counts what waits for the client; ends the connection if the budget has no room for it.
  void WeighUnsent();
  void OnReadable() override;
  void OnWritable() override;
  void OnDrain() override;
  void OnSweep(uint64_t now_ms) override;
  void OnClosed() override;

  const Place place_;
  ConnectionTurn turn_;
  base::Inbox<GrpcMessage> orders_;
  std::atomic<bool> is_write_blocked_{false};  // written by the thread that has the connection
  net::BurstDetector bursts_;  // responses of streams from threads other than the reactor's
  std::atomic<bool> is_burst_queued_{false};

  // -- Confined to the thread that has the connection. --
  Http2Output output_;
  std::unique_ptr<GrpcSession> session_;  // null once closed
  bool is_finished_ = false;              // to be closed on the reactor
  uint64_t timer_due_ns_ = kNever;        // when timer_ ends

  // -- Confined to the reactor. --
  net::Timer timer_;
  base::BufferRef received_;  // only between a read and the session's processing of it
  size_t received_size_ = 0;  // bytes in it that the session has not seen
  uint8_t due_ = 0;           // see Due
  bool is_flush_queued_ = false;
  ConnectionWatch watch_;
  base::BudgetGrant unsent_;  // what waited for the client at the last sweep
  CallTask<&GrpcConnection::OnFlush> flush_{*this};
  CallTask<&GrpcConnection::OnHandover> handover_{*this};  // by the thread that has the connection
  CallTask<&GrpcConnection::OnBurst> burst_{*this};  // by the thread that set is_burst_queued_
};

}  // namespace nereid::http2
