// SPDX-License-Identifier: Apache-2.0
// One gRPC connection. It moves bytes and orders between its socket, its reactor and the parts that
// know what to do:
//
//   ConnectionTurn    which thread has the connection
//   Inbox             orders for its calls, from any thread
//   GrpcSession       the protocol
//   Http2Output       what is to be written
//   ConnectionWatch   what is due by the coarse clock
//
// At any time at most one thread has the connection; only it touches the session and the output and
// writes to the socket. Nobody waits for it. A thread with an order for a call puts it into the
// inbox and tries to take the connection: with success it carries out every order and writes;
// without, the thread that has the connection does so before it lets go. When orders come faster
// than they can be written one by one, as from a model with many responses, they are left to the
// reactor, which finds several each time. The reactor takes the connection to read; when another
// thread has it, that thread hands it over to the reactor instead of letting go.
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
#include "net/connection.h"
#include "net/pace.h"
#include "net/reactor.h"

namespace nereid::http2 {

// Confined to its reactor or to the thread that has it, as said below; what CallHost has is
// thread-safe.
class GrpcConnection final : public net::Connection, public CallHost {
 public:
  // What a connection belongs to; all of it outlives the connection.
  struct Place {
    const GrpcServerOptions& options;
    GrpcHandler& handler;
    net::ConnectionGroup& group;
    net::Reactor& reactor;
    base::TaskPool& workers;
  };
  // On the reactor: begins to serve. The connection deletes itself. `tls` is null for a plain one.
  static void Start(const Place& place, base::UniqueFd socket,
                    std::unique_ptr<net::TlsChannel> tls);

  // CallHost
  void Submit(GrpcMessagePtr message) override;
  void Hold() override { net::Connection::Hold(); }
  void Release() override { net::Connection::Release(); }
  bool is_crowded() const override { return net::Connection::is_crowded(); }
  base::TaskPool& workers() const override { return place_.workers; }

 private:
  static constexpr size_t kBulkReceiveBytes = (256 << 10) - base::kBufferOverhead;
  static constexpr int kReadsPerTurn = 16;
  static constexpr size_t kReceiveBytes = (16 << 10) - base::kBufferOverhead;
  // What the reactor is to do as soon as it has the connection.
  enum Due : uint8_t { kTick = 1, kDrain = 2, kCheck = 4, kWrite = 8 };

  // A call of this connection that can be queued on its reactor. The connection is held meanwhile.
  template <void (GrpcConnection::*kCall)()>
  struct CallTask final : net::Task {
    explicit CallTask(GrpcConnection& connection) : connection(connection) {}
    void Run() override { (connection.*kCall)(); }
    GrpcConnection& connection;
  };

  GrpcConnection(const Place& place, base::UniqueFd socket, std::unique_ptr<net::TlsChannel> tls);
  ~GrpcConnection() override;

  // Does what there are notes for, and lets go.
  void LetGo();
  // On the reactor: does what is due, now or as soon as it has the connection.
  void ReactorTurn(uint8_t due = 0);

  // These need to have the connection; WorkOnReactor also is on the reactor.
  void WorkOnReactor();
  void ReadSocket();
  // What a read found: as much as it had room for, all there was, or an end.
  enum class Read { kMore, kAll, kFailed };
  Read ReadOn();
  void ServeOrders();
  void WriteOut();
  void Shut();
  void ArmTimer();

  // A thread that has the connection has let the reactor have it.
  void OnHandover();
  // After the reactor's round: what was finished together leaves together.
  void OnFlush();
  // Orders came thick and fast from other threads.
  void OnBurst();

  // Holds no memory for what will come: a connection that idles costs little, and the next one to
  // read gets the buffer while it is in the processor's cache.
  void WaitForBytes();
  void OnReadable() override;
  void OnWritable() override;
  void OnDrain() override;
  void OnSweep(uint64_t now_ms) override;
  void OnClosed() override;

  const Place place_;
  ConnectionTurn turn_;
  base::Inbox<GrpcMessage> orders_;
  std::atomic<bool> is_write_blocked_{false};  // written by the thread that has the connection
  net::Pace pace_;  // of responses of streams from other threads than the reactor's
  std::atomic<bool> is_burst_queued_{false};

  // -- Confined to the thread that has the connection. --
  Http2Output output_;
  std::unique_ptr<GrpcSession> session_;  // null once closed
  bool is_finished_ = false;              // to be closed on the reactor

  // -- Confined to the reactor. --
  net::Timer timer_;
  uint64_t timer_due_ns_ = kNever;
  base::BufferRef received_;  // only between a read and the session's having seen its bytes
  size_t received_size_ = 0;  // bytes in it that the session has not seen
  uint8_t due_ = 0;           // see Due
  bool is_flush_queued_ = false;
  ConnectionWatch watch_;
  CallTask<&GrpcConnection::OnFlush> flush_{*this};
  CallTask<&GrpcConnection::OnHandover> handover_{*this};  // of the thread that has the connection
  CallTask<&GrpcConnection::OnBurst> burst_{*this};  // of the thread that set is_burst_queued_
};

}  // namespace nereid::http2
