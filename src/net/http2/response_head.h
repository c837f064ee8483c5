// SPDX-License-Identifier: Apache-2.0
// Submits the header fields and trailers of gRPC responses to nghttp2.
#pragma once

#include <cstdint>
#include <string_view>

#include <nghttp2/nghttp2.h>

#include "http2/grpc_message.h"
#include "net/compression.h"

namespace nereid::http2 {

// Each function returns 0, or nghttp2's error.

// Submits a response without messages: headers and trailers at once. Omits the part of `text` that
// is too long for clients. `more` are further trailers; null: none.
int SubmitStatus(nghttp2_session* session, int32_t stream_id, int code, std::string_view text,
                 const GrpcTrailers* more = nullptr);
// Submits the headers before messages, which `provider` supplies, compressed by `encoding`.
int SubmitHead(nghttp2_session* session, int32_t stream_id, net::Compression encoding,
               const nghttp2_data_provider& provider);
// Submits the trailers after messages.
int SubmitTrailers(nghttp2_session* session, int32_t stream_id, int code, std::string_view text,
                   const GrpcTrailers* more = nullptr);
// Submits a response to a request that is not gRPC.
int SubmitHttpStatus(nghttp2_session* session, int32_t stream_id, int status);

}  // namespace nereid::http2
