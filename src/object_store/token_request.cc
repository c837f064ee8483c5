// SPDX-License-Identifier: Apache-2.0
#include "object_store/token_request.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <fmt/format.h>

#include "http_client/url.h"

namespace nereid::object_store {
namespace {

using http_client::HttpReply;
using http_client::HttpRequest;

constexpr size_t kMaxReplyBytes = 1 << 20;
constexpr size_t kMaxReasonBytes = 200;
// For replies that do not say how long a token is good.
constexpr std::chrono::seconds kUsualLifetime{300};

// What a reply of an OAuth server, or of another that writes JSON, says about its failure: a code
// and the first line of a sentence, without what could quote the request.
std::string ReasonOf(const HttpReply& reply) {
  std::string reason = fmt::format("HTTP status {}", reply.status);
  const auto json = ParseFlatJson(reply.body);
  if (!json.ok()) return reason;
  for (const char* const name : {"error", "error.status", "error_description", "error.message"}) {
    std::string text = ValueOf(*json, name);
    text = text.substr(0, std::min(text.find_first_of("\r\n"), kMaxReasonBytes));
    if (!text.empty()) reason += ": " + text;
  }
  return reason;
}

}  // namespace

TokenReply AskForToken(http_client::HttpClient& client, HttpRequest request,
                       const TokenRequestOptions& options) {
  http_client::Attempts attempts(options.retry);
  request.timeout = options.timeout;
  for (;;) {
    TokenReply result;
    request.on_body = [&result](const HttpReply&, std::string_view bytes) {
      result.body += bytes;
      return result.body.size() <= kMaxReplyBytes;
    };
    HttpReply reply = client.Send(request);
    result.status = reply.status;
    result.headers = std::move(reply.headers);
    if (reply.is_success()) return result;
    result.failure = reply.failure.empty() ? ReasonOf(reply) : reply.failure;
    const bool may_pass =
        reply.failure.empty() ? http_client::MayPass(reply.status) : !reply.is_final;
    if (!may_pass || !attempts.Next()) return result;
    attempts.Pause();
  }
}

base::Result<Expiring<std::string>> ParseBearerToken(std::string_view body, std::string_view who) {
  const auto json = ParseFlatJson(body);
  Expiring<std::string> token{.value = json.ok() ? ValueOf(*json, "access_token") : "",
                              .lifetime = kUsualLifetime};
  if (token.value.empty() || !CanBeHeader(token.value)) {
    return base::UnavailableError(fmt::format("{} replied without a token", who));
  }
  const std::string seconds = ValueOf(*json, "expires_in");
  uint32_t count = 0;
  if (std::from_chars(seconds.data(), seconds.data() + seconds.size(), count).ec == std::errc()) {
    token.lifetime = std::chrono::seconds(count);
  }
  return token;
}

base::Result<Expiring<std::string>> AskForBearerToken(http_client::HttpClient& client,
                                                      HttpRequest request, std::string_view who,
                                                      const TokenRequestOptions& options) {
  const TokenReply reply = AskForToken(client, std::move(request), options);
  if (!reply.is_success()) {
    return base::UnavailableError(fmt::format("{} gives no token: {}", who, reply.failure));
  }
  return ParseBearerToken(reply.body, who);
}

HttpRequest FormRequest(std::string url, const std::map<std::string, std::string>& fields) {
  HttpRequest request;
  request.method = http_client::Method::kPost;
  request.url = std::move(url);
  request.headers["content-type"] = "application/x-www-form-urlencoded";
  for (const auto& [name, value] : fields) {
    if (!request.body.empty()) request.body += '&';
    request.body += name + "=" + http_client::PercentEncode(value, false);
  }
  return request;
}

std::optional<int64_t> ParseUtcTime(std::string_view text) {
  std::tm time{};
  const std::string copy(text);
  const char* const rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  int64_t nanoseconds = 0;
  const char* at = rest;
  if (*at == '.') {
    int64_t unit = 100'000'000;
    for (++at; *at >= '0' && *at <= '9'; ++at, unit /= 10) nanoseconds += (*at - '0') * unit;
  }
  const std::string_view zone(at);
  if (zone != "Z" && zone != "+00:00") return std::nullopt;
  // Times that do not fit are no times of objects.
  if (time.tm_year < 70 || time.tm_year > 330) return std::nullopt;
  return static_cast<int64_t>(::timegm(&time)) * 1'000'000'000 + nanoseconds;
}

std::optional<std::chrono::seconds> TimeUntil(std::string_view utc_time) {
  const auto time = ParseUtcTime(utc_time);
  if (!time) return std::nullopt;
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return std::chrono::seconds(*time / 1'000'000'000) - now;
}

bool CanBeHeader(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c != 0x7F; });
}

}  // namespace nereid::object_store
