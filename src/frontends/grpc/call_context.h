// SPDX-License-Identifier: Apache-2.0
// What every call of the frontend works with.
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

// What one stream may have waiting for a client that does not read.
struct StreamLimits {
  // Responses and bytes of them beyond which the model that makes them waits.
  size_t most_unsent_responses = INT32_MAX;
  size_t most_unsent_bytes = size_t{64} << 20;
  // How long it waits for the client to take the next one before the stream is given up.
  std::chrono::milliseconds longest_pause{60'000};
};

// Outlives the calls. Thread-safe.
struct CallContext {
  service::Service& service;
  const common::RoundExecutors& rounds;
  // Which metadata become parameters of requests; null: none.
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  StreamLimits stream_limits;
  observe::Tracing* tracing = nullptr;  // null: nobody is traced
  // Before each answer of ModelInfer; zero but in tests of cancellation, which need the time.
  std::chrono::milliseconds answer_delay{0};
  // The same before each answer of the calls that carry no tensors, for tests of clients'
  // deadlines.
  std::chrono::milliseconds control_delay{0};
  std::atomic<bool> is_stopping{false};  // new requests are refused
};

inline constexpr std::string_view kStoppingText =
    "GRPC server is shutting down and has stopped accepting new requests.";
// What grpc++ says of a request that is not the message it should be.
inline constexpr std::string_view kUnparsableText = "Unable to parse request";

// Makes those metadata of `call` parameters of `request` that the operator chose; an error when one
// is reserved. What gRPC itself sends with every call is no metadata.
base::Status ForwardMetadata(const CallContext& context, const http2::GrpcCall& call,
                             core::Request& request);

// Null but for requests that are traced.
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
