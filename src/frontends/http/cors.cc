// SPDX-License-Identifier: Apache-2.0
#include "http/cors.h"

namespace nereid::http {

CorsPolicy::CorsPolicy(const CorsOptions& options) {
  const auto lines = [](const std::string& origin) {
    std::string text = "Access-Control-Allow-Origin: " + origin + "\r\n";
    if (origin != "*") text += "Vary: Origin\r\n";
    text +=
        "Access-Control-Expose-Headers: Content-Encoding, Inference-Header-Content-Length, "
        "endpoint-load-metrics\r\n";
    return text;
  };
  for (const std::string& origin : options.origins) origins_.push_back({origin, lines(origin)});
  preflight_lines_ = "Access-Control-Allow-Methods: " + options.methods +
                     "\r\nAccess-Control-Allow-Headers: " + options.headers +
                     "\r\nAccess-Control-Max-Age: " + std::to_string(options.max_age_s) + "\r\n";
}

std::string_view CorsPolicy::ReplyLines(const http1::HttpHead& head) const {
  const std::string_view origin = head.Header("Origin");
  if (origin.empty()) return {};
  for (const Origin& allowed : origins_) {
    if (allowed.name == "*" || allowed.name == origin) return allowed.lines;
  }
  return {};
}

bool CorsPolicy::IsPreflight(const http1::HttpHead& head) {
  return head.method() == http1::HttpMethod::kOptions && head.FindHeader("Origin").has_value() &&
         head.FindHeader("Access-Control-Request-Method").has_value();
}

}  // namespace nereid::http
