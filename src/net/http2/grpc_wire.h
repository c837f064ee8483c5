// SPDX-License-Identifier: Apache-2.0
// The small text forms of the gRPC protocol over HTTP/2.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::http2 {

// Flag and length before each message.
inline constexpr size_t kGrpcPrefixBytes = 5;

// The value of `grpc-timeout`: up to eight digits and a unit of H, M, S, m, u, n. Nothing when it
// is not one.
std::optional<std::chrono::nanoseconds> ParseGrpcTimeout(std::string_view value);

// `text` as a `grpc-message`: everything but printable ASCII, and '%' itself, as %XX.
std::string PercentEncode(std::string_view text);

// "application/grpc", alone or followed by '+' or ';'.
bool IsGrpcContentType(std::string_view value);

// Whether a comma-separated list names `word`.
bool ListContains(std::string_view list, std::string_view word);

}  // namespace nereid::http2
