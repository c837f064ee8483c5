// SPDX-License-Identifier: Apache-2.0
// One gRPC connection: socket, session and the rule of who may touch them.
//
// At any time at most one thread *has* the connection (kTaken in state_); only it touches the
// session and the output and writes to the socket. Nobody waits for it. A thread with an order for
// a call pushes it to the outbox and tries to take the connection: with success it carries out
// every order and writes; without, the one who has it does so before letting go. When orders come
// faster than they can be written one by one, as from a model with many responses, they are left to
// the reactor, which finds several each time. The reactor takes
// it to read; when another thread has it, that thread hands it over to the reactor instead of
// letting go.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "http2/grpc_server.h"
#include "http2/grpc_session.h"
#include "http2/http2_output.h"
#include "net/connection.h"
#include "net/pace.h"
#include "net/reactor.h"

namespace nereid::http2 {

class GrpcConnection final : public net::Connection {
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

  // From any thread: carries out `order` now or has it carried out.
  void Submit(GrpcMessagePtr order);
  base::TaskPool& workers() const { return workers_; }

 private:
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kHasOrders = 2;
  static constexpr uint32_t kReactorWaits = 4;
  static constexpr size_t kBulkReceiveBytes = (256 << 10) - base::kBufferOverhead;
  static constexpr int kReadsPerTurn = 16;
  static constexpr size_t kReceiveBytes = (16 << 10) - base::kBufferOverhead;
  static constexpr uint64_t kCrowdedIdleMs = 2'000;

  // Queued on the reactor by a thread that has the connection and lets the reactor have it.
  struct Handover final : net::Task {
    explicit Handover(GrpcConnection& connection) : connection(connection) {}
    void Run() override;
    GrpcConnection& connection;
  };
  // Queued after the reactor's round, to answer together what was finished together.
  struct Flush final : net::Task {
    explicit Flush(GrpcConnection& connection) : connection(connection) {}
    void Run() override;
    GrpcConnection& connection;
  };

  // Queued on the reactor by a thread whose orders come thick and fast.
  struct Burst final : net::Task {
    explicit Burst(GrpcConnection& connection) : connection(connection) {}
    void Run() override;
    GrpcConnection& connection;
  };

  GrpcConnection(const Place& place, base::UniqueFd socket, std::unique_ptr<net::TlsChannel> tls);
  ~GrpcConnection() override;

  bool TryTake(uint32_t bits);
  void LetGo();
  // On the reactor: does what is to be done there as soon as it has the connection.
  void ReactorTurn();

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

  // Holds no memory for what will come: a connection that idles costs little, and the next one to
  // read gets the buffer while it is in the processor's cache.
  void WaitForBytes();
  void OnReadable() override;
  void OnWritable() override;
  void OnDrain() override;
  void OnSweep(uint64_t now_ms) override;
  void OnClosed() override;

  const GrpcServerOptions& options_;
  base::TaskPool& workers_;

  std::atomic<uint32_t> state_{0};
  std::atomic<GrpcMessage*> outbox_{nullptr};  // newest first
  std::atomic<bool> is_write_blocked_{false};  // written by who has the connection
  net::Pace pace_;  // of responses of streams from other threads than the reactor's
  std::atomic<bool> is_burst_queued_{false};

  // -- Confined to who has the connection. --
  std::unique_ptr<GrpcSession> session_;  // null once closed
  Http2Output output_;
  bool is_finished_ = false;  // to be closed on the reactor

  // -- Confined to the reactor. --
  net::Timer timer_;
  uint64_t timer_due_ns_ = kNever;
  base::BufferRef received_;  // only between a read and the session's having seen its bytes
  size_t received_size_ = 0;  // bytes in it that the session has not seen
  uint64_t last_read_ms_ = 0;
  bool can_write_ = false;
  bool is_tick_due_ = false;
  bool is_drain_due_ = false;
  bool is_check_due_ = false;
  uint64_t checked_ms_ = 0;  // for progress
  bool flush_queued_ = false;
  uint64_t blocked_since_ms_ = 0;  // 0: not blocked at the last sweep
  Flush flush_{*this};
  Handover handover_{*this};  // of the one who has the connection
  Burst burst_{*this};        // of the one who has set is_burst_queued_
};

}  // namespace nereid::http2
