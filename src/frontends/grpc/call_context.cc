// SPDX-License-Identifier: Apache-2.0
#include "grpc/call_context.h"

namespace nereid::grpc {

namespace {

bool IsOfTheTransport(std::string_view name) {
  return name == "content-type" || name == "te" || name.starts_with("grpc-");
}

}  // namespace

http2::GrpcStatus StatusOf(access::Denial denial) {
  switch (denial) {
    case access::Denial::kMissing:
    case access::Denial::kInvalid:
    case access::Denial::kExpired:
      return http2::GrpcStatus::kUnauthenticated;
    case access::Denial::kScope:
    case access::Denial::kModel:
      return http2::GrpcStatus::kPermissionDenied;
    case access::Denial::kTooMany:
      return http2::GrpcStatus::kResourceExhausted;
    case access::Denial::kNotReady:
      return http2::GrpcStatus::kUnavailable;
  }
  return http2::GrpcStatus::kPermissionDenied;
}

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
