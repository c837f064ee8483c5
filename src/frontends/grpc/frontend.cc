// SPDX-License-Identifier: Apache-2.0
#include "grpc/frontend.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/log.h"
#include "common/audit.h"
#include "grpc/call_context.h"
#include "grpc/control_call.h"
#include "grpc/infer_call.h"
#include "grpc/reflection.h"
#include "grpc/stream_call.h"

namespace nereid::grpc {

namespace {

// Triton's variables that delay the response of a ModelInfer call, with which tests cancel between
// an execution and its response.
std::chrono::milliseconds ResponseDelay() {
  int64_t sum_ms = 0;
  for (const char* variable :
       {"TRITONSERVER_DELAY_RESPONSE_COMPLETION", "TRITONSERVER_DELAY_RESPONSE_COMPLETE_EXEC"}) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) continue;
    sum_ms += std::max(std::atoi(text), 0);
    NEREID_LOG(kInfo, "Delaying the responses of ModelInfer by {} ms ({})", text, variable);
  }
  return std::chrono::milliseconds(sum_ms);
}

// The variable that delays the responses of all other unary calls, with which tests let deadlines
// of clients pass.
std::chrono::milliseconds ControlDelay() {
  const char* const text = std::getenv("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC");
  if (text == nullptr) return {};
  NEREID_LOG(kInfo, "Delaying the responses of gRPC calls other than inference by {} s", text);
  return std::chrono::seconds(std::clamp(std::atoi(text), 0, 3600));
}

// Small messages need not be credited one by one, but what all the streams of a connection together
// keep back must leave half of its budget to messages in service.
size_t CreditStep(const http2::GrpcServerOptions& options) {
  const size_t streams = std::max<size_t>(options.max_concurrent_streams, 1);
  return std::clamp<size_t>(options.connection_budget_bytes / 2 / streams, 1, 4 << 10);
}

}  // namespace

// Finds the method of a path, and whether the client may call it.
class Frontend::Handler final : public http2::GrpcHandler {
 public:
  Handler(const FrontendOptions& options, const FrontendParts& parts)
      : restrictions_(options.restrictions),
        control_is_elsewhere_(options.control_is_elsewhere),
        context{.service = parts.service,
                .rounds = parts.rounds,
                .gate = options.gate,
                .forwarder = options.forwarder,
                .stream_limits = {.most_unsent_responses = options.max_unsent_responses,
                                  .most_unsent_bytes = options.max_unsent_bytes,
                                  .most_requests = options.max_stream_requests,
                                  .credit_step = CreditStep(options.server)},
                .budgets = options.budgets,
                .tracing = parts.service.tracing(),
                .response_delay = ResponseDelay(),
                .control_delay = ControlDelay()} {}

  // Every RPC enters here.
  http2::GrpcCallEvents* OnCall(http2::GrpcCallRef call) override {
    const std::optional<Rpc> rpc = FindRpc(call->path());
    if (!rpc) {
      call->Finish(http2::GrpcStatus::kUnimplemented, {});  // without a text, as in grpc++
      return nullptr;
    }
    if (call->is_crowded() && rpc->category != common::Category::kHealth) [[unlikely]] {
      call->Finish(http2::GrpcStatus::kUnavailable, common::kCrowdedText);
      return nullptr;
    }
    access::GrantRef grant;
    uint64_t generation = 0;
    if (context.gate != nullptr) [[unlikely]] {
      generation = context.gate->generation();
      access::Admission admission =
          context.gate->Admit(CallSender(*call), rpc->scope, /*model=*/{});
      if (admission.denial) {
        Refuse(*call, *rpc, admission.grant.get(), StatusOf(*admission.denial), admission.text);
        return nullptr;
      }
      grant = std::move(admission.grant);
    }
    if (!control_is_elsewhere_.empty() && access::IsControl(rpc->scope)) [[unlikely]] {
      Refuse(*call, *rpc, grant.get(), http2::GrpcStatus::kPermissionDenied, control_is_elsewhere_);
      return nullptr;
    }
    if (!restrictions_.empty() && IsRefused(*call, rpc->category)) {
      call->Finish(http2::GrpcStatus::kUnavailable,
                   "This protocol is restricted, expecting header '" +
                       restrictions_.key(rpc->category) + "'");
      return nullptr;
    }
    switch (rpc->kind) {
      case RpcKind::kInfer:
        return InferCall::Start(context, std::move(call), std::move(grant));
      case RpcKind::kStreamInfer:
        return StreamCall::Start(context, std::move(call), std::move(grant), generation);
      case RpcKind::kControl:
        return ControlCall::Start(context, std::move(call), *rpc->route, std::move(grant));
      case RpcKind::kReflection:
        return ReflectionCall::Start(std::move(call));
    }
    return nullptr;
  }

 private:
  enum class RpcKind : uint8_t { kInfer, kStreamInfer, kControl, kReflection };
  // Every RPC has a category and a scope.
  struct Rpc {
    Rpc(RpcKind kind, common::Category category, access::Scope scope,
        const ControlRoute* route = nullptr)
        : kind(kind), category(category), scope(scope), route(route) {}
    RpcKind kind;
    common::Category category;
    access::Scope scope;
    const ControlRoute* route;  // only for kControl
  };

  static std::optional<Rpc> FindRpc(std::string_view path) {
    using access::Scope;
    using common::Category;
    if (path == "/inference.GRPCInferenceService/ModelInfer") {
      return Rpc(RpcKind::kInfer, Category::kInference, Scope::kInfer);
    }
    if (path == "/inference.GRPCInferenceService/ModelStreamInfer") {
      return Rpc(RpcKind::kStreamInfer, Category::kInference, Scope::kInfer);
    }
    if (const ControlRoute* const route = FindControlRoute(path)) {
      return Rpc(RpcKind::kControl, route->category, route->scope, route);
    }
    if (IsReflectionPath(path)) {
      return Rpc(RpcKind::kReflection, Category::kMetadata, Scope::kMetadata);
    }
    return std::nullopt;
  }

  bool IsRefused(const http2::GrpcCall& call, common::Category category) const {
    return restrictions_.IsRestricted(category) &&
           restrictions_.Refuses(category, call.Metadata(restrictions_.lower_key(category)));
  }

  static void Refuse(http2::GrpcCall& call, const Rpc& rpc, const access::Grant* grant,
                     http2::GrpcStatus status, std::string_view text) {
    if (access::IsAudited(rpc.scope)) {
      common::Audit({.who = common::WhoIs(grant),
                     .what = std::string(call.path()),
                     .address = call.PeerAddress()},
                    text, /*is_refused=*/true);
    }
    call.Finish(status, text);
  }

  const common::Restrictions restrictions_;
  const std::string control_is_elsewhere_;

 public:
  CallContext context;
};

base::Result<std::unique_ptr<Frontend>> Frontend::Start(const FrontendOptions& options,
                                                        const FrontendParts& parts) {
  std::unique_ptr<Frontend> frontend(new Frontend(std::make_unique<Handler>(options, parts)));
  NEREID_ASSIGN_OR_RETURN(
      frontend->server_, http2::GrpcServer::Start(options.server, parts.pool, *frontend->handler_));
  return frontend;
}

Frontend::Frontend(std::unique_ptr<Handler> handler) : handler_(std::move(handler)) {}

Frontend::~Frontend() = default;

uint16_t Frontend::port() const { return server_->port(); }

size_t Frontend::connections() const { return server_->connections(); }

void Frontend::EndStreams() { handler_->context.ends_streams.store(true); }

bool Frontend::Drain(base::TimePoint deadline) { return server_->Drain(deadline); }

}  // namespace nereid::grpc
