// SPDX-License-Identifier: Apache-2.0
// Cross-origin resource sharing: which web pages may read the replies of this server
// (--http-cors-*). Off by default: browsers then hide replies from all pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http1/http_server.h"

namespace nereid::http {

// The flags --http-cors-….
struct CorsOptions {
  // Origins as browsers send them ("https://app.example.com"), or "*" for any. None: off.
  std::vector<std::string> origins;
  std::string methods = "GET, HEAD, POST";
  std::string headers =
      "Accept, Authorization, Content-Encoding, Content-Type, Inference-Header-Content-Length, "
      "endpoint-load-metrics-format, traceparent, tracestate";
  int max_age_s = 600;  // how long a browser may cache the reply to a preflight
};

// The rules for all requests. Immutable.
class CorsPolicy {
 public:
  explicit CorsPolicy(const CorsOptions& options);

  // Returns complete header lines for the reply to a request: empty if it has no origin or one that
  // is not allowed. They live as long as the policy.
  std::string_view ReplyLines(const http1::HttpHead& head) const;
  // Returns whether the request is a preflight, with which a browser asks for permission.
  static bool IsPreflight(const http1::HttpHead& head);
  // The header lines that grant the permission, in addition to ReplyLines.
  std::string_view preflight_lines() const { return preflight_lines_; }

 private:
  // An allowed origin, and the header lines for responses to its pages.
  struct Origin {
    std::string name;
    std::string lines;
  };
  std::vector<Origin> origins_;
  std::string preflight_lines_;
};

}  // namespace nereid::http
