// SPDX-License-Identifier: Apache-2.0
// Headers about what a client may expect: Request-Timeout, by which it says how long it waits for
// the response; Retry-After, by which the server says when to try again; and RateLimit-*, by which
// it says how much is left of the client's requests per second.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/status.h"
#include "core/request.h"
#include "http1/http_server.h"

namespace nereid::http {

// Returns the time that "1.5", "1.5s", "250ms" or "800us" stands for. Without a unit, it is
// seconds.
base::Result<std::chrono::nanoseconds> ParseRequestTimeout(std::string_view text);

// Sets the deadline of `request` if the client sent a Request-Timeout, counted from the first byte
// of its head.
base::Status ReadRequestTimeout(const http1::HttpExchange& exchange, core::Request& request);

// Returns the whole header line. Its unit is the second, so it is rounded up.
std::string RetryAfterLine(std::chrono::nanoseconds after);

// Appends the line Retry-After of a reply with that status and error; nothing if trying again would
// not help.
void AppendRetryAfterLine(int status, const base::Status& error, std::string& lines);

// Appends the lines of all three headers RateLimit-*; nothing if there is no limit.
void AppendRateLimitLines(const core::QuotaLeft& left, std::string& lines);

}  // namespace nereid::http
