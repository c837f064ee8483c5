// SPDX-License-Identifier: Apache-2.0
// The state that all calls of the frontend share.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>

#include "access/gate.h"
#include "base/status.h"
#include "common/header_forwarding.h"
#include "common/reactor_rounds.h"
#include "common/status_codes.h"
#include "core/budgets.h"
#include "http2/grpc_server.h"
#include "service/service.h"

namespace nereid::grpc {

// Limits for one stream: for its requests, and for responses that wait for a client that does not
// read.
struct StreamLimits {
  // The number of responses and bytes that may wait before the model that sends them has to wait.
  size_t most_unsent_responses = INT32_MAX;
  size_t most_unsent_bytes = size_t{64} << 20;
  // The number of requests in progress. A client that sends more loses the stream.
  size_t most_requests = SIZE_MAX;
  // The bytes of finished requests are credited when there are so many, with a response if there is
  // one. Until then they count against the budget of the connection, even while the stream is idle.
  size_t credit_step = size_t{4} << 10;
  // How long the model waits for the client to take the next response before the stream is aborted.
  std::chrono::milliseconds longest_pause{60'000};
};

// Outlives the calls. Thread-safe.
struct CallContext {
  service::Service& service;
  const common::RoundExecutors& rounds;
  // Knows who may do what; null: everybody may do everything.
  access::Gate* gate = nullptr;
  // Which metadata become parameters of requests; null: none.
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  StreamLimits stream_limits;
  core::Budgets* budgets = nullptr;     // of which requests take their part; null: no limits
  observe::Tracing* tracing = nullptr;  // null: no traces
  // A delay before each response of ModelInfer; only tests of cancellation, which need the time,
  // set it.
  std::chrono::milliseconds response_delay{0};
  // A delay before each response of the calls without tensors, for tests of clients' deadlines.
  std::chrono::milliseconds control_delay{0};
  std::atomic<bool> ends_streams{false};  // which take no more requests
};

inline constexpr std::string_view kStoppingText =
    "GRPC server is shutting down and has stopped accepting new requests.";
// The text of grpc++ for a request that cannot be parsed.
inline constexpr std::string_view kUnparsableText = "Unable to parse request";

// Makes the metadata of `call` that the operator chose parameters of `request`; fails if one is
// reserved. The headers that gRPC itself sends are not metadata.
base::Status ForwardMetadata(const CallContext& context, const http2::GrpcCall& call,
                             core::Request& request);

// Passes a request to service::Service::Direct, with the metadata of `call`.
void DirectRequest(const CallContext& context, const http2::GrpcCall& call, core::Request& request);

// Returns when the client of `call` stops waiting, in monotonic nanoseconds; 0: never.
inline uint64_t DeadlineNs(const http2::GrpcCall& call) {
  const auto deadline = call.deadline();
  return deadline ? static_cast<uint64_t>(deadline->time_since_epoch().count()) : 0;
}

// Returns null unless the request is traced.
inline std::shared_ptr<observe::Trace> StartTrace(const CallContext& context,
                                                  const http2::GrpcCall& call,
                                                  std::string_view model) {
  if (context.tracing == nullptr || !context.tracing->is_on()) [[likely]]
    return nullptr;
  return context.tracing->Start(model, {.traceparent = call.Metadata("traceparent"),
                                        .tracestate = call.Metadata("tracestate")});
}

// The sender of a call.
class CallSender final : public access::Sender {
 public:
  explicit CallSender(const http2::GrpcCall& call) : call_(call) {}
  std::string_view Authorization() const override { return call_.Metadata("authorization"); }
  std::string_view ApiKey() const override { return call_.Metadata("x-api-key"); }
  const net::PeerIdentity* certificate() const override { return call_.peer_identity(); }
  std::string Address() const override { return call_.PeerAddress(); }

 private:
  const http2::GrpcCall& call_;
};

// The regions of shared memory that requests of the sender may use; null if none.
inline memory::RegionTable* RegionsFor(CallContext& context, const access::Grant* grant) {
  return access::MayUseRegions(grant) ? &context.service.regions() : nullptr;
}

// The status of a call that the gate refuses.
http2::GrpcStatus StatusOf(access::Denial denial);

// Trailers that tell the client when to try again (grpc-retry-pushback-ms); none if the error does
// not say.
http2::GrpcTrailers PushbackTrailers(const base::Status& error);

// Ends the call with the error.
void FinishWith(http2::GrpcCall& call, const base::Status& error);

// Trailers with the server's load in the format that the client of `call` asks for. REQUIRES: it
// asks.
http2::GrpcTrailers LoadTrailers(const CallContext& context, const http2::GrpcCall& call);

}  // namespace nereid::grpc
