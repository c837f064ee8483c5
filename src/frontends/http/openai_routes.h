// SPDX-License-Identifier: Apache-2.0
// What this module and `openai` share: the routes of OpenAI's API are rows of the route table like
// all others, so that keys, restrictions and cross-origin rules apply to them, but what they do is
// that module's business.
#pragma once

#include <string>
#include <string_view>

#include "http/dialect.h"
#include "http/route.h"
#include "http1/http_server.h"

namespace nereid::http {

// Serves the routes kOpenAi…. Thread-safe.
class OpenAiRoutes {
 public:
  virtual ~OpenAiRoutes() = default;
  // Called when the sender has been admitted to the route and the method is one that it has, on a
  // reactor or on a worker thread. The texts of `route` are valid until this returns.
  virtual void Serve(http1::HttpExchangePtr exchange, const Route& route) = 0;
};

// Returns {"error":{"message":...,"type":...,"param":...,"code":...}}. The type follows from the
// status; `param` (the field that is wrong) and `code` are null if empty.
std::string OpenAiError(int status, std::string_view message, std::string_view param = {},
                        std::string_view code = {});

// The form of errors of these routes.
extern const Dialect kOpenAiDialect;

}  // namespace nereid::http
