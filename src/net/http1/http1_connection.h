// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 connection, which is also the one exchange that it can have at a time. It moves
// bytes and calls between its socket, its reactor, its handler and these parts:
//
//   RequestReceiver   bytes to requests (the reactor)
//   ReplyWriter       a whole reply (the thread that replies, then the reactor)
//   StreamWriter      a streamed one (both)
//   ExchangeListener  the frontend's listener (set by the frontend's thread, called by the reactor)
//   ReplyHandover     synchronises the thread that replies and the reactor
//   Timeouts          when to give up (the reactor)
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "http1/http_server.h"
#include "http1/reply_handover.h"
#include "http1/reply_writer.h"
#include "http1/request_receiver.h"
#include "http1/stream_writer.h"
#include "http1/timeouts.h"
#include "net/connection.h"
#include "net/tls_handshake.h"

namespace nereid::http1 {

// What the connections of one server share.
class HttpServer::Core {
 public:
  Core(const HttpServerOptions& options, net::ReactorPool& pool, HttpHandler& handler)
      : options(options), handler(handler), group(pool) {}

  const HttpServerOptions options;
  HttpHandler& handler;
  std::unique_ptr<net::TlsContext> tls;  // null: plain
  net::TlsHandshake::Next after_handshake;
  net::ConnectionGroup group;
  std::atomic<bool> closes_idle{false};  // connections end when nothing of a request has arrived
};

// Confined to its reactor, except for the reply functions (one thread at a time).
class Http1Connection final : public net::Connection, public HttpExchange {
 public:
  Http1Connection(net::Reactor& reactor, HttpServer::Core& core, net::Accepted accepted,
                  std::unique_ptr<net::TlsChannel> tls = nullptr);
  using HttpExchange::is_crowded;
  using net::Connection::reactor;
  void Start();

  // The reply side of HttpExchange.
  void Reply(const HttpReply& reply);
  void Drop();
  bool BeginStream(const HttpReply& reply, std::string_view chunk);
  bool StreamChunk(std::string_view chunk);
  void FinishStream(std::string_view chunk);

 private:
  enum class State : uint8_t {
    kReceiving,  // receiving a request, or waiting for one
    kBusy,       // the exchange is with the handler, or its reply is being written
    kLinger,     // the last reply is sent; waiting for the client to close
  };
  // A call of this connection that can be queued on its reactor.
  template <void (Http1Connection::*kCall)()>
  struct CallTask final : net::Task {
    explicit CallTask(Http1Connection& connection) : connection(connection) {}
    void Run() override { (connection.*kCall)(); }
    Http1Connection& connection;
  };

  // net::Connection
  void OnRead(size_t n) override;
  void OnReadEnd(bool eof) override;
  void OnReadable() override;
  void OnWritable() override;
  void OnClientEnded() override { NoticeClientEnd(); }
  void OnDrain() override;
  void OnSweep(uint64_t now_ms) override;
  void OnClosed() override;

  // Receiving.
  void Process();
  // Calls Process after what other connections have received.
  void ProcessSoon();
  void OnTurn();
  void ReadMore();
  void WaitForBytes();
  // While bytes after the request keep the connection from reading: reports a client that has left.
  void NoticeClientEnd();
  void BeginExchange(bool closes);
  // Passes the request to the handler. Returns true if the exchange is over and the next request
  // may begin.
  bool Dispatch();
  bool Refuse(const HttpRefusal& refusal);
  void SendContinue();
  // Refuses a body that is arriving.
  void EndBody(int status, std::string_view reason);
  // Counts what waits for the client; closes the connection if the budget has no room for it.
  void WeighUnsent();
  Timeouts::Situation CurrentSituation() const;

  // Replying.
  ReplyForm reply_form() const;
  void AfterSend(ssize_t sent, bool is_through);
  void SendDeferred();
  // Sends what the socket takes; returns true if nothing is left. A broken connection counts as
  // done.
  bool SendRest();
  // Sends while the calling thread has the turn; returns the step that ended it.
  StreamWriter::Step SendTurn(StreamWriter& stream, StreamWriter::Step step);
  void OnStreamTask() { TakeStreamTurn(StreamWriter::Cause::kTask); }
  void TakeStreamTurn(StreamWriter::Cause cause);

  // The end of an exchange. HasReplied returns whether another thread has written a whole reply
  // without telling the reactor.
  bool HasReplied() const;
  void Complete(bool needs_reactor);
  void OnResume();
  void FinishExchange();

  HttpServer::Core& core_;
  RequestReceiver receiver_;
  Timeouts timeouts_;
  base::BudgetGrant unsent_;  // what waited for the client at the last sweep
  State state_ = State::kReceiving;
  bool in_handle_ = false;          // Handle is on the stack
  bool write_handed_ = false;       // the reactor writes the rest of the reply
  bool held_ = false;               // closed before the exchange had a reply
  bool eof_ = false;                // the client sends no more
  bool is_stream_waiting_ = false;  // the next room in the socket is for stream_

  ReplyHandover handover_;
  // Used by the thread that has the exchange, then by the reactor: never by both at once.
  bool close_after_ = false;
  bool stream_started_ = false;
  ReplyWriter writer_;
  std::unique_ptr<StreamWriter> stream_;
  CallTask<&Http1Connection::SendDeferred> send_{*this};
  CallTask<&Http1Connection::OnResume> resume_{*this};
  CallTask<&Http1Connection::OnStreamTask> stream_task_{*this};
  CallTask<&Http1Connection::OnTurn> turn_{*this};  // queued once at most
};

}  // namespace nereid::http1
