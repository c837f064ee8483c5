// SPDX-License-Identifier: Apache-2.0
// What the handlers of this module have in common.
#pragma once

#include <string_view>

#include "common/json_text.h"
#include "http1/http_server.h"

namespace nereid::http {

// Its server replies to requests that it refuses itself in the form of all other errors.
class JsonHandler : public http1::HttpHandler {
 public:
  http1::HttpErrorBody ErrorBody(std::string_view text) override {
    return {.content_type = "application/json", .text = common::JsonError(text)};
  }
};

}  // namespace nereid::http
