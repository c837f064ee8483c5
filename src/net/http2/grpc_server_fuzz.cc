// SPDX-License-Identifier: Apache-2.0
// Fuzzes an HTTP/2 connection to a gRPC server that echoes: frames, header blocks and messages. For
// any input, the server must end the connection once the client has, and keep nothing of it.
#include "http2/grpc_server.h"

#include <string_view>

#include "base/check.h"
#include "base/object_pool.h"
#include "fuzz/exchange.h"
#include "fuzz/fuzz.h"

namespace {

namespace base = nereid::base;
namespace net = nereid::net;
using nereid::http2::GrpcCallEvents;
using nereid::http2::GrpcCallRef;
using nereid::http2::GrpcHandler;
using nereid::http2::GrpcMessage;
using nereid::http2::GrpcMessagePtr;
using nereid::http2::GrpcServer;
using nereid::http2::GrpcServerOptions;
using nereid::http2::GrpcStatus;

// Responds to each message with the same message and ends when the client does.
class Echo final : public GrpcCallEvents {
 public:
  static Echo* Start(GrpcCallRef call) {
    Echo* const echo = base::ObjectPool<Echo>::Take();
    echo->call_ = std::move(call);
    return echo;
  }
  void OnMessage(base::BufferRef, std::string_view message) override {
    GrpcMessagePtr reply = GrpcMessage::Create();
    NEREID_CHECK(reply->Append(message));
    call_->Credit(message.size());
    call_->Send(std::move(reply));
  }
  void OnHalfClose() override { call_->Finish(GrpcStatus::kOk, ""); }
  void OnCancelled() override {}
  void OnDone() override { base::ObjectPool<Echo>::Give(this); }
  void Recycle() { call_.Reset(); }

 private:
  GrpcCallRef call_;
};

class EchoHandler final : public GrpcHandler {
 public:
  GrpcCallEvents* OnCall(GrpcCallRef call) override {
    if (call->path() == "/echo") return Echo::Start(std::move(call));
    call->Finish(GrpcStatus::kUnimplemented, "no such method");
    return nullptr;
  }
};

class Server {
 public:
  Server() : pool_(1) {
    GrpcServerOptions options;
    options.listener.address = "unix:" + nereid::fuzz::SocketPath();
    options.max_message_bytes = 1 << 20;
    auto started = GrpcServer::Start(options, pool_, handler_);
    NEREID_CHECK(started.ok());
    server_ = std::move(*started);
  }

  void Serve(std::string_view bytes) { nereid::fuzz::Exchange(bytes); }

 private:
  EchoHandler handler_;
  net::ReactorPool pool_;
  std::unique_ptr<GrpcServer> server_;
};

std::string Frame(char type, char flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (int shift = 16; shift >= 0; shift -= 8) frame += static_cast<char>(payload.size() >> shift);
  frame += type;
  frame += flags;
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(stream >> shift);
  return frame.append(payload);
}

std::string Field(std::string_view name, std::string_view value) {
  std::string field(1, '\0');  // a literal that is not indexed
  field += static_cast<char>(name.size());
  field.append(name) += static_cast<char>(value.size());
  return field.append(value);
}

std::string Head(std::string_view path, std::string_view more = "") {
  return Field(":method", "POST") + Field(":scheme", "http") + Field(":path", path) +
         Field(":authority", "a") + Field("content-type", "application/grpc") +
         Field("te", "trailers") + std::string(more);
}

std::string Message(std::string_view text, char flag = 0) {
  std::string message(1, flag);
  for (int shift = 24; shift >= 0; shift -= 8) message += static_cast<char>(text.size() >> shift);
  return message.append(text);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  constexpr char kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kGoAway = 7,
                 kWindow = 8, kContinuation = 9;
  constexpr char kEndStream = 1, kEndHeaders = 4, kPadded = 8;
  using namespace std::string_view_literals;
  const std::string start = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "");
  const std::string open = Frame(kHeaders, kEndHeaders, 1, Head("/echo"));
  return {
      start + open + Frame(kData, kEndStream, 1, Message("hello")),
      start + open + Frame(kData, 0, 1, Message("he").substr(0, 3)) +
          Frame(kData, kEndStream, 1, Message("he").substr(3)) + Frame(kPing, 0, 0, "12345678"),
      start + Frame(kHeaders, kEndHeaders | kEndStream, 1, Head("/other")) +
          Frame(kWindow, 0, 0, "\0\0\1\0"sv) + Frame(kGoAway, 0, 0, "\0\0\0\0\0\0\0\0"sv),
      start + Frame(kHeaders, 0, 1, Head("/echo").substr(0, 20)) +
          Frame(kContinuation, kEndHeaders, 1, Head("/echo").substr(20)) +
          Frame(kData, kPadded, 1, "\3" + Message("padded") + std::string(3, 0)) +
          Frame(kReset, 0, 1, "\0\0\0\10"sv),
      start +
          Frame(kHeaders, kEndHeaders, 1,
                Head("/echo", Field("grpc-timeout", "1S") + Field("grpc-encoding", "gzip"))) +
          Frame(kData, kEndStream, 1, Message("not gzip", 1)) +
          Frame(kSettings, 0, 0, "\0\4\0\0\0\1\0\5\0\0\100\0"sv),
      start + open + Frame(kHeaders, kEndHeaders, 3, Head("/echo")) +
          Frame(kData, 0, 3, Message("a") + Message("b")) +
          Frame(kData, kEndStream, 1, Message("")) + Frame(kData, kEndStream, 3, ""),
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Server server;
  server.Serve({reinterpret_cast<const char*>(data), size});
  return 0;
}
