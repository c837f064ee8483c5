// SPDX-License-Identifier: Apache-2.0
// The header fields and trailers of gRPC responses, given to nghttp2.
#pragma once

#include <cstdint>
#include <string_view>

#include <nghttp2/nghttp2.h>

#include "net/compression.h"

namespace nereid::http2 {

// Each returns 0, or nghttp2's error.

// A response without messages: headers and trailers at once. What is too long of `text` for a
// client is left out.
int SubmitStatus(nghttp2_session* session, int32_t stream_id, int code, std::string_view text);
// The headers before messages, which `provider` brings, compressed by `encoding`.
int SubmitHead(nghttp2_session* session, int32_t stream_id, net::Compression encoding,
               const nghttp2_data_provider& provider);
// The trailers behind messages.
int SubmitTrailers(nghttp2_session* session, int32_t stream_id, int code, std::string_view text);
// A response to a request that is not gRPC.
int SubmitHttpStatus(nghttp2_session* session, int32_t stream_id, int status);

}  // namespace nereid::http2
