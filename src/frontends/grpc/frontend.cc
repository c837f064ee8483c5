// SPDX-License-Identifier: Apache-2.0
#include "grpc/frontend.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "grpc/call_context.h"
#include "grpc/control_call.h"
#include "grpc/infer_call.h"
#include "grpc/reflection.h"
#include "grpc/stream_call.h"

namespace nereid::grpc {

namespace {

// The variables of Triton that delay the answer of a ModelInfer call, by which tests bring a
// cancellation between an execution and its answer.
std::chrono::milliseconds AnswerDelay() {
  int64_t sum_ms = 0;
  for (const char* variable :
       {"TRITONSERVER_DELAY_RESPONSE_COMPLETION", "TRITONSERVER_DELAY_RESPONSE_COMPLETE_EXEC"}) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) continue;
    sum_ms += std::max(std::atoi(text), 0);
    NEREID_LOG(kInfo, "Delaying the answers of ModelInfer by {} ms ({})", text, variable);
  }
  return std::chrono::milliseconds(sum_ms);
}

}  // namespace

// Finds out what a path stands for.
class Frontend::Handler final : public net::GrpcHandler {
 public:
  explicit Handler(const FrontendParts& parts)
      : context{.service = parts.service, .rounds = parts.rounds, .answer_delay = AnswerDelay()} {}

  net::GrpcCallEvents* OnCall(net::GrpcCallRef call) override {
    const std::string_view path = call->path();
    if (path == "/inference.GRPCInferenceService/ModelInfer") {
      return InferCall::Start(context, std::move(call));
    }
    if (path == "/inference.GRPCInferenceService/ModelStreamInfer") {
      return StreamCall::Start(context, std::move(call));
    }
    if (const ControlMethod method = FindControlMethod(path)) {
      return ControlCall::Start(context, std::move(call), method);
    }
    if (IsReflectionPath(path)) return ReflectionCall::Start(std::move(call));
    call->Finish(net::GrpcStatus::kUnimplemented, {});  // no text, as grpc++
    return nullptr;
  }

  CallContext context;
};

base::Result<std::unique_ptr<Frontend>> Frontend::Start(const FrontendOptions& options,
                                                        const FrontendParts& parts) {
  std::unique_ptr<Frontend> frontend(new Frontend(std::make_unique<Handler>(parts)));
  NEREID_ASSIGN_OR_RETURN(frontend->server_,
                          net::GrpcServer::Start(options.server, parts.pool, *frontend->handler_));
  return frontend;
}

Frontend::Frontend(std::unique_ptr<Handler> handler) : handler_(std::move(handler)) {}

Frontend::~Frontend() = default;

uint16_t Frontend::port() const { return server_->port(); }

size_t Frontend::connections() const { return server_->connections(); }

void Frontend::RefuseRequests() {
  handler_->context.is_stopping.store(true, std::memory_order_relaxed);
}

bool Frontend::Drain(base::TimePoint deadline) { return server_->Drain(deadline); }

}  // namespace nereid::grpc
