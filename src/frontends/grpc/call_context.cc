// SPDX-License-Identifier: Apache-2.0
#include "grpc/call_context.h"

namespace nereid::grpc {

namespace {

bool IsOfTheTransport(std::string_view name) {
  return name == "content-type" || name == "te" || name.starts_with("grpc-");
}

}  // namespace

base::Status ForwardMetadata(const CallContext& context, const http2::GrpcCall& call,
                             core::Request& request) {
  if (context.forwarder == nullptr) return base::OkStatus();
  for (size_t i = 0; i < call.metadata_count(); ++i) {
    const auto [name, value] = call.metadata(i);
    if (IsOfTheTransport(name)) continue;
    NEREID_RETURN_IF_ERROR(context.forwarder->Offer(name, value, request));
  }
  return base::OkStatus();
}

}  // namespace nereid::grpc
