// SPDX-License-Identifier: Apache-2.0
// Replies that contain nothing but their status. For this module and `cloud`.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "http1/http_server.h"

namespace nereid::http {

// Replies with {"error":"<reason phrase>"}.
inline void RespondStatus(http1::HttpExchangePtr exchange, int status,
                          std::string_view headers = {}) {
  const std::string body = "{\"error\":\"" + std::string(http1::HttpReason(status)) + "\"}";
  http1::HttpExchange::Respond(
      std::move(exchange),
      {.status = status, .content_type = "application/json", .headers = headers, .text = body});
}

}  // namespace nereid::http
