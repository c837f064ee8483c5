// SPDX-License-Identifier: Apache-2.0
#include "http/openai_routes.h"

#include "common/json_text.h"

namespace nereid::http {
namespace {

std::string_view TypeOf(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

// The codes that clients know, for errors that come with none.
std::string_view UsualCode(int status) {
  switch (status) {
    case 401:
      return "invalid_api_key";
    case 429:
      return "rate_limit_exceeded";
    default:
      return {};
  }
}

void AppendText(std::string& json, std::string_view name, std::string_view text) {
  common::AppendJsonString(json, name);
  json += ':';
  if (text.empty()) {
    json += "null";
  } else {
    common::AppendJsonString(json, text);
  }
}

std::string PlainOpenAiError(int status, std::string_view message) {
  return OpenAiError(status, message);
}

}  // namespace

std::string OpenAiError(int status, std::string_view message, std::string_view param,
                        std::string_view code) {
  std::string json = "{\"error\":{\"message\":";
  common::AppendJsonString(json, message);
  json += ',';
  AppendText(json, "type", TypeOf(status));
  json += ',';
  AppendText(json, "param", param);
  json += ',';
  AppendText(json, "code", code.empty() ? UsualCode(status) : code);
  json += "}}";
  return json;
}

const Dialect kOpenAiDialect{.error_body = &PlainOpenAiError};

}  // namespace nereid::http
