// SPDX-License-Identifier: Apache-2.0
#include "http/limit_headers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/json_text.h"

namespace nereid::http {
namespace {

// Nobody waits longer, and its nanoseconds fit into all arithmetic on the clock.
constexpr double kMaxSeconds = 1e6;

constexpr std::chrono::seconds kSoon{1};

// Returns how many seconds a unit has; 0 if there is no such unit.
double SecondsOf(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us") return 1e-6;
  return 0;
}

}  // namespace

base::Result<std::chrono::nanoseconds> ParseRequestTimeout(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const double seconds = number * SecondsOf({rest, static_cast<size_t>(end - rest)});
  // The comparison is false for what is not a number, too.
  if (error != std::errc() || !(seconds > 0) || std::isinf(seconds)) {
    return base::InvalidArgumentError(
        fmt::format("header 'Request-Timeout' has the value '{}'; expected a time above 0, such as "
                    "'1.5' (seconds), '250ms' or '800us'",
                    text));
  }
  return std::chrono::nanoseconds(std::llround(std::min(seconds, kMaxSeconds) * 1e9));
}

base::Status ReadRequestTimeout(const http1::HttpExchange& exchange, core::Request& request) {
  const auto text = exchange.head().FindHeader("Request-Timeout");
  if (!text) [[likely]]
    return base::OkStatus();
  NEREID_ASSIGN_OR_RETURN(const std::chrono::nanoseconds timeout, ParseRequestTimeout(*text));
  request.deadline_ns = exchange.start_ns() + static_cast<uint64_t>(timeout.count());
  return base::OkStatus();
}

std::string RetryAfterLine(std::chrono::nanoseconds after) {
  return fmt::format("Retry-After: {}\r\n", std::chrono::ceil<std::chrono::seconds>(after).count());
}

void AppendRetryAfterLine(int status, const base::Status& error, std::string& lines) {
  // Whatever refuses with 503 is over soon.
  const auto after = status == 503 ? std::max<std::chrono::nanoseconds>(error.retry_after(), kSoon)
                                   : error.retry_after();
  if (after.count() > 0) lines += RetryAfterLine(after);
}

void AppendRateLimitLines(const core::QuotaLeft& left, std::string& lines) {
  if (left.limit == 0) return;
  lines += "RateLimit-Limit: ";
  common::AppendJsonInteger(lines, left.limit);
  lines += "\r\nRateLimit-Remaining: ";
  common::AppendJsonInteger(lines, left.remaining);
  lines += "\r\nRateLimit-Reset: ";
  common::AppendJsonInteger(lines, left.reset_s);
  lines += "\r\n";
}

}  // namespace nereid::http
