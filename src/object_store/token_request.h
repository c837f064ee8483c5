// SPDX-License-Identifier: Apache-2.0
// Requests to the servers that issue tokens and keys: those of a cloud, and those of a machine.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "http_client/http_client.h"
#include "http_client/retry.h"
#include "object_store/flat_json.h"
#include "object_store/renewed.h"

namespace nereid::object_store {

// How such a server is asked.
struct TokenRequestOptions {
  // Each attempt.
  std::chrono::milliseconds timeout{10'000};
  http_client::RetryPolicy retry = {.attempts = 3};
};
// For the metadata server of a machine, which many machines do not have and others have only
// some seconds after they start.
inline constexpr TokenRequestOptions kMetadataRequest{.timeout = std::chrono::milliseconds(1000),
                                                      .retry = {.attempts = 3}};

// The outcome of a request: the body of a reply, or why there is none.
struct TokenReply {
  int status = 0;  // 0: no reply
  std::string body;
  std::map<std::string, std::string> headers;
  std::string failure;  // without secrets; empty: success

  bool is_success() const { return failure.empty(); }
};

// Sends `request`, which lacks `on_body` and `timeout`, and repeats it after failures that may
// pass.
TokenReply AskForToken(http_client::HttpClient& client, http_client::HttpRequest request,
                       const TokenRequestOptions& options = {});

// Sends `request` and reads {"access_token": …, "expires_in": …}, the reply of OAuth servers.
// `who` begins the error.
base::Result<Expiring<std::string>> AskForBearerToken(http_client::HttpClient& client,
                                                      http_client::HttpRequest request,
                                                      std::string_view who,
                                                      const TokenRequestOptions& options = {});
// Reads such a reply.
base::Result<Expiring<std::string>> ParseBearerToken(std::string_view body, std::string_view who);

// Returns a POST of a form; the values are percent-encoded here.
http_client::HttpRequest FormRequest(std::string url,
                                     const std::map<std::string, std::string>& fields);

// Reads "2026-01-31T12:34:56.789Z" as nanoseconds since 1970; returns nothing for anything else.
std::optional<int64_t> ParseUtcTime(std::string_view text);
// Returns how long it is from now to such a time; nothing where it is no time.
std::optional<std::chrono::seconds> TimeUntil(std::string_view utc_time);

// Whether text from outside can be the value of a header.
bool CanBeHeader(std::string_view text);

}  // namespace nereid::object_store
