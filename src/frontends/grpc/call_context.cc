// SPDX-License-Identifier: Apache-2.0
#include "grpc/call_context.h"

#include <algorithm>
#include <string>

#include "common/base64.h"
#include "common/load_report.h"

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

http2::GrpcTrailers PushbackTrailers(const base::Status& error) {
  if (error.retry_after().count() <= 0) return {};
  const auto after = std::chrono::ceil<std::chrono::milliseconds>(error.retry_after()).count();
  // Clients read an int32.
  return {{"grpc-retry-pushback-ms", std::to_string(std::min<int64_t>(after, INT32_MAX))}};
}

void FinishWith(http2::GrpcCall& call, const base::Status& error) {
  const auto status = static_cast<http2::GrpcStatus>(common::GrpcStatus(error.code()));
  if (http2::GrpcTrailers trailers = PushbackTrailers(error); !trailers.empty()) {
    return call.Finish(status, error.message(), std::move(trailers));
  }
  call.Finish(status, error.message());
}

http2::GrpcTrailers LoadTrailers(const CallContext& context, const http2::GrpcCall& call) {
  const std::string_view format = call.Metadata(common::kLoadFormatHeader);
  http2::GrpcTrailers trailers;
  if (format == "bin") {
    std::string text;
    common::AppendBase64(text, common::ReadLoadMessage(context.service));
    trailers.emplace_back(common::kBinaryLoadHeader, std::move(text));
  } else if (format == "json" || format == "text") {
    std::string text = common::ReadLoadText(format, context.service);
    if (!text.empty()) trailers.emplace_back(common::kLoadHeader, std::move(text));
  }
  return trailers;
}

void DirectRequest(const CallContext& context, const http2::GrpcCall& call,
                   core::Request& request) {
  context.service.Direct(request, [&call](std::string_view name) { return call.Metadata(name); });
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
