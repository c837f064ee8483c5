// SPDX-License-Identifier: Apache-2.0
// A load generator for gRPC inference with little overhead: one thread, one epoll, prepared
// messages, nghttp2 for HTTP/2.
//
//   grpc_load --port=8001 --message=FILE [--connections=4] [--streams=4] [--stream] ...
//
//   --message=FILE  the bytes of a ModelInferRequest
//   --streams=M     concurrent calls on each connection
//   --stream        ModelStreamInfer: calls that stay open, one request at a time in each
//   --middle=FILE --last=FILE --sequence-length=20
//                   sequences, whose first request is --message; the sequence_id in each is
//                   1000000000
//   --metadata=NAME:VALUE
//                   metadata of every call, the name in lower case; may be repeated
//   --check         every response of ModelInfer must be the same as the first, byte for byte
//   --answer=FILE   writes the first response, without the five bytes of gRPC's frame
//
// and the options of load/driver.h. Prints one JSON object. A response with an error ends the run.

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/driver.h"
#include "load/options.h"
#include "load/socket.h"
#include "loadgen/grpc_connection.h"
#include "loadgen/target.h"

namespace nereid::bench {
namespace {

using loadgen::GrpcCall;
using loadgen::GrpcConnection;
using loadgen::GrpcFrame;

template <typename T>
T OrDie(base::Result<T> result) {
  if (!result.ok()) Die(std::string(result.status().message()));
  return *std::move(result);
}

void Check(const base::Status& status) {
  if (!status.ok()) Die(std::string(status.message()));
}

Requests MakeRequests(const Options& options) {
  const std::string message = GrpcFrame(options.File("message"));
  if (!options.Has("middle")) return Requests::One(message);
  return Requests::Sequence(message, GrpcFrame(options.File("middle")),
                            GrpcFrame(options.File("last")), options.Count("sequence-length", 20),
                            Requests::IdForm::kVarint);
}

std::vector<std::pair<std::string, std::string>> MakeMetadata(const Options& options) {
  std::vector<std::pair<std::string, std::string>> metadata;
  for (const std::string& pair : options.All("metadata")) {
    const size_t colon = pair.find(':');
    if (colon == std::string::npos) Die("--metadata is not NAME:VALUE: " + pair);
    metadata.emplace_back(pair.substr(0, colon), pair.substr(colon + 1));
  }
  return metadata;
}

struct Call : Slot {
  GrpcCall grpc;
  GrpcConnection* connection = nullptr;
};

// Runs the load. Confined to one thread.
class Load {
 public:
  explicit Load(const Options& options)
      : is_stream_(options.Has("stream")),
        check_(options.Has("check")),
        port_(std::to_string(options.Count("port", 8001))),
        address_(OrDie(loadgen::Address::Tcp("127.0.0.1", port_))),
        head_{.method = std::string("/inference.GRPCInferenceService/") +
                        (is_stream_ ? "ModelStreamInfer" : "ModelInfer"),
              .authority = "127.0.0.1:" + port_,
              .metadata = MakeMetadata(options)},
        answer_file_(options.Text("answer", "")),
        driver_(options, MakeRequests(options), [this](Slot& slot, std::string_view request) {
          Begin(static_cast<Call&>(slot), request);
        }) {
    const size_t streams = options.Count("streams", 1);
    for (size_t i = options.Count("connections", 1); i > 0; --i) {
      Connect();
      for (size_t k = 0; k < streams; ++k) {
        Call& call = calls_.emplace_back();
        call.connection = connections_.back().get();
        call.grpc.is_unary = !is_stream_;
        call.grpc.owner = &call;
        driver_.Add(call);
      }
    }
  }

  void Run() {
    driver_.Begin();
    FlushAll();
    while (!driver_.IsDone()) {
      poller_.Wait(driver_.WaitMs(), [this](void* user, uint32_t events) {
        auto& connection = *static_cast<GrpcConnection*>(user);
        if (events & ~uint32_t{EPOLLOUT}) CheckPort(connection.Receive());
        Flush(connection);
      });
      driver_.Tick();
      if (driver_.WaitMs() == 0) FlushAll();
    }
    driver_.Print();
  }

 private:
  void Connect() {
    const size_t keep_bytes = check_ || !answer_file_.empty() ? SIZE_MAX : 256;
    auto stream = loadgen::Stream::Connect(address_, nullptr);
    CheckPort(stream.status());
    connections_.push_back(std::make_unique<GrpcConnection>(
        std::move(stream).value(), head_, keep_bytes,
        GrpcConnection::Events{.on_message = [this](GrpcCall& call) { TakeMessage(call); },
                               .on_close = [this](GrpcCall& call) { TakeClose(call); }}));
    poller_.Add(connections_.back()->fd(), connections_.back().get());
  }

  void CheckPort(const base::Status& status) const {
    Check(status.WithPrefix("port " + port_ + ": "));
  }

  void Begin(Call& call, std::string_view request) {
    if (is_stream_ && call.grpc.stream_id >= 0) {
      call.connection->Send(call.grpc, request);
    } else {
      Check(call.connection->Begin(call.grpc, request));
    }
  }

  void TakeMessage(GrpcCall& grpc) {
    auto& call = *static_cast<Call*>(grpc.owner);
    if (!is_stream_) {
      CheckAnswer(grpc.message);
      driver_.Responded(call);
      return;  // finished once its status is known
    }
    // Field 1 is the text of an error, field 2 the response.
    if (!grpc.message.empty() && grpc.message[0] == '\x0A') Die("an error: " + grpc.message);
    if (!call.is_busy) Die("a response to no request");
    if (driver_.Responded(call)) driver_.Finished(call);
  }

  void TakeClose(GrpcCall& grpc) {
    auto& call = *static_cast<Call*>(grpc.owner);
    if (grpc.status != 0) {
      Die("status " + std::to_string(grpc.status) + ": " + grpc.status_message);
    }
    if (is_stream_) Die("the server ended a stream");
    driver_.Finished(call);
  }

  void CheckAnswer(const std::string& message) {
    if (!has_first_) {
      has_first_ = true;
      first_ = message;
      if (!answer_file_.empty()) WriteFile(answer_file_, message);
    }
    if (check_ && driver_.answers_are_alike() && message != first_) {
      Die("another answer than the first");
    }
  }

  void FlushAll() {
    for (const auto& connection : connections_) Flush(*connection);
  }

  void Flush(GrpcConnection& connection) {
    const auto flushed = connection.Flush();
    CheckPort(flushed.status());
    const bool wants_write = !*flushed;
    if (wants_write == connection.wants_write) return;
    connection.wants_write = wants_write;
    poller_.WantWrite(connection.fd(), &connection, wants_write);
  }

  const bool is_stream_;
  const bool check_;
  const std::string port_;
  const loadgen::Address address_;
  const loadgen::GrpcHead head_;
  const std::string answer_file_;
  Poller poller_;
  std::vector<std::unique_ptr<GrpcConnection>> connections_;
  std::deque<Call> calls_;
  Driver driver_;
  bool has_first_ = false;
  std::string first_;
};

}  // namespace
}  // namespace nereid::bench

int main(int argc, char** argv) {
  nereid::bench::RaiseFileLimit();
  const nereid::bench::Options options(argc, argv);
  nereid::bench::Load(options).Run();
}
