// SPDX-License-Identifier: Apache-2.0
#include "openai/api_error.h"

#include <string>

#include "common/status_codes.h"
#include "http/infer_call.h"
#include "http/openai_routes.h"

namespace nereid::openai {

ApiError FieldError(std::string_view param, std::string message) {
  return {base::InvalidArgumentError(std::move(message)), param};
}

void RespondError(http1::HttpExchangePtr exchange, const ApiError& error,
                  std::string_view headers) {
  if (error.param().empty() && error.code().empty()) {
    return http::RespondError(std::move(exchange), error.status(), headers, http::kOpenAiDialect);
  }
  const std::string body = ErrorJson(error);
  http1::HttpExchange::Respond(std::move(exchange),
                               {.status = common::HttpStatus(error.status().code()),
                                .content_type = "application/json",
                                .headers = headers,
                                .text = body});
}

std::string ErrorJson(const ApiError& error) {
  return http::OpenAiError(common::HttpStatus(error.status().code()), error.status().message(),
                           error.param(), error.code());
}

}  // namespace nereid::openai
