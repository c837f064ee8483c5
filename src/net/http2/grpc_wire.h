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

// A flag and the length precede each message.
inline constexpr size_t kGrpcPrefixBytes = 5;

// Parses `grpc-timeout`: up to eight digits and a unit of H, M, S, m, u, n. Returns nothing if it
// is malformed.
std::optional<std::chrono::nanoseconds> ParseGrpcTimeout(std::string_view value);

// Encodes `text` as a `grpc-message`: everything but printable ASCII, and '%' itself, as %XX. Omits
// the end of a text that would take more than `max_bytes` so, from a whole character of UTF-8 on.
std::string PercentEncode(std::string_view text, size_t max_bytes);

// Matches "application/grpc", alone or followed by '+' or ';'.
bool IsGrpcContentType(std::string_view value);

// Returns whether a comma-separated list contains `word`.
bool ListContains(std::string_view list, std::string_view word);

}  // namespace nereid::http2
