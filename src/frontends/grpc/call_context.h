// SPDX-License-Identifier: Apache-2.0
// The state that all calls of the frontend share.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "common/header_forwarding.h"
#include "common/reactor_rounds.h"
#include "common/status_codes.h"
#include "http2/grpc_server.h"
#include "service/service.h"

namespace nereid::grpc {

// Limits for responses of one stream that wait for a client that does not read.
struct StreamLimits {
  // The number of responses and bytes that may wait before the model that sends them has to wait.
  size_t most_unsent_responses = INT32_MAX;
  size_t most_unsent_bytes = size_t{64} << 20;
  // How long the model waits for the client to take the next response before the stream is aborted.
  std::chrono::milliseconds longest_pause{60'000};
};

// Outlives the calls. Thread-safe.
struct CallContext {
  service::Service& service;
  const common::RoundExecutors& rounds;
  // Which metadata become parameters of requests; null: none.
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  StreamLimits stream_limits;
  observe::Tracing* tracing = nullptr;  // null: no traces
  // A delay before each response of ModelInfer; only tests of cancellation, which need the time,
  // set it.
  std::chrono::milliseconds response_delay{0};
  // A delay before each response of the calls without tensors, for tests of clients' deadlines.
  std::chrono::milliseconds control_delay{0};
  std::atomic<bool> is_stopping{false};  // new requests are refused
};

inline constexpr std::string_view kStoppingText =
    "GRPC server is shutting down and has stopped accepting new requests.";
// The text of grpc++ for a request that cannot be parsed.
inline constexpr std::string_view kUnparsableText = "Unable to parse request";

// Makes the metadata of `call` that the operator chose parameters of `request`; fails if one is
// reserved. The headers that gRPC itself sends are not metadata.
base::Status ForwardMetadata(const CallContext& context, const http2::GrpcCall& call,
                             core::Request& request);

// Returns null unless the request is traced.
inline std::shared_ptr<observe::Trace> StartTrace(const CallContext& context,
                                                  const http2::GrpcCall& call,
                                                  std::string_view model) {
  if (context.tracing == nullptr || !context.tracing->is_on()) [[likely]]
    return nullptr;
  return context.tracing->Start(model, {.traceparent = call.Metadata("traceparent"),
                                        .tracestate = call.Metadata("tracestate")});
}

inline void FinishWith(http2::GrpcCall& call, const base::Status& error) {
  call.Finish(static_cast<http2::GrpcStatus>(common::GrpcStatus(error.code())), error.message());
}

}  // namespace nereid::grpc
