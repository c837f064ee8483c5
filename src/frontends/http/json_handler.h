// SPDX-License-Identifier: Apache-2.0
// The common base of this module's handlers.
#pragma once

#include <string_view>

#include "common/json_text.h"
#include "http1/http_server.h"

namespace nereid::http {

// The server's replies to requests that it refuses itself have the same form as all other errors.
class JsonHandler : public http1::HttpHandler {
 public:
  http1::HttpErrorBody ErrorBody(std::string_view text) override {
    return {.content_type = "application/json", .text = common::JsonError(text)};
  }
};

}  // namespace nereid::http
