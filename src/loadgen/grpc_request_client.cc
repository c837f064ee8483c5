// SPDX-License-Identifier: Apache-2.0
// The part of request_client.h for gRPC: a few connections, each with a few calls.
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "loadgen/request_client.h"

namespace nereid::loadgen {
namespace {

// Clients of servers share a connection between about as many callers.
constexpr size_t kCallsOfConnection = 16;
// Replies are counted, not read.
constexpr size_t kKeepBytes = 0;

class GrpcRequestClient final : public RequestClient {
 public:
  GrpcRequestClient(const Target& target, size_t calls, Poller& poller, OnEnd on_end)
      : target_(target), poller_(poller), on_end_(std::move(on_end)), calls_(calls) {
    for (size_t i = 0; i < calls; ++i) {
      if (i % kCallsOfConnection == 0) places_.emplace_back();
      calls_[i].grpc.owner = &calls_[i];
      calls_[i].place = &places_.back();
      places_.back().calls.push_back(&calls_[i]);
    }
  }

  base::Status Begin(size_t call, std::string_view request) override {
    Call& begun = calls_[call];
    Place& place = *begun.place;
    if (place.connection == nullptr) NEREID_RETURN_IF_ERROR(Connect(place));
    NEREID_RETURN_IF_ERROR(place.connection->Begin(begun.grpc, request));
    begun.is_busy = place.has_unsent = true;
    return base::OkStatus();
  }

  void Abandon(size_t call) override {
    Call& abandoned = calls_[call];
    abandoned.is_busy = false;
    if (abandoned.place->connection == nullptr) return;
    abandoned.place->connection->Abandon(abandoned.grpc);
    abandoned.place->has_unsent = true;
  }

  void Handle(void* user, uint32_t events) override {
    Place& place = *static_cast<Place*>(user);
    if (place.connection == nullptr) return;
    if ((events & ~uint32_t{EPOLLOUT}) != 0) {
      if (const base::Status status = place.connection->Receive(); !status.ok()) {
        return Lose(place, status);
      }
    }
    FlushPlace(place);
  }

  void Flush() override {
    for (Place& place : places_) {
      if (place.has_unsent && place.connection != nullptr) FlushPlace(place);
    }
  }

 private:
  struct Place;

  struct Call {
    GrpcCall grpc;
    Place* place = nullptr;
    bool is_busy = false;
    bool has_message = false;
  };

  // A connection and its calls.
  struct Place {
    std::unique_ptr<GrpcConnection> connection;  // null: there is none at the moment
    std::vector<Call*> calls;
    bool has_unsent = false;
  };

  base::Status Connect(Place& place) {
    NEREID_ASSIGN_OR_RETURN(Stream stream, Stream::Connect(target_.address, target_.tls));
    place.connection = std::make_unique<GrpcConnection>(
        std::move(stream), target_.grpc, kKeepBytes,
        GrpcConnection::Events{
            .on_message =
                [](GrpcCall& call) { static_cast<Call*>(call.owner)->has_message = true; },
            .on_close = [this](GrpcCall& call) { TakeClose(*static_cast<Call*>(call.owner)); }});
    poller_.Add(place.connection->fd(), &place);
    return base::OkStatus();
  }

  void TakeClose(Call& call) {
    if (!call.is_busy) return;
    call.is_busy = false;
    const bool has_message = std::exchange(call.has_message, false);
    if (call.grpc.status == 0 && has_message) {
      return on_end_(IndexOf(call), Ending::kSuccess, {});
    }
    std::string text = call.grpc.status_message;
    if (call.grpc.status < 0) {
      text = "a reply without a status";
    } else if (text.empty()) {
      text = fmt::format("status {} without a message", call.grpc.status);
    }
    on_end_(IndexOf(call), Ending::kRefused, text);
  }

  void FlushPlace(Place& place) {
    place.has_unsent = false;
    const base::Result<bool> flushed = place.connection->Flush();
    if (!flushed.ok()) return Lose(place, flushed.status());
    const bool wants_write = !*flushed;
    if (wants_write == place.connection->wants_write) return;
    place.connection->wants_write = wants_write;
    poller_.WantWrite(place.connection->fd(), &place, wants_write);
  }

  void Lose(Place& place, const base::Status& why) {
    // Kept until all calls know, because the reason may be asked for.
    const std::unique_ptr<GrpcConnection> lost = std::move(place.connection);
    for (Call* const call : place.calls) {
      if (!call->is_busy) continue;
      call->is_busy = call->has_message = false;
      call->grpc.stream_id = -1;
      on_end_(IndexOf(*call), lost->was_established() ? Ending::kLost : Ending::kNoServer,
              why.message());
    }
  }

  size_t IndexOf(const Call& call) const { return static_cast<size_t>(&call - calls_.data()); }

  const Target& target_;
  Poller& poller_;
  const OnEnd on_end_;
  std::vector<Call> calls_;
  std::deque<Place> places_;
};

}  // namespace

std::string GrpcFrame(std::string_view message) {
  std::string framed(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) {
    framed.push_back(static_cast<char>(message.size() >> shift & 0xFF));
  }
  return framed.append(message);
}

std::unique_ptr<RequestClient> MakeGrpcClient(const Target& target, size_t calls, Poller& poller,
                                              RequestClient::OnEnd on_end) {
  return std::make_unique<GrpcRequestClient>(target, calls, poller, std::move(on_end));
}

}  // namespace nereid::loadgen
