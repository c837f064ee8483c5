// SPDX-License-Identifier: Apache-2.0
// TLS for connections to Redis. One of two implementations is built: with hiredis' own
// (tls_openssl), or without any (tls_none), which refuses.
#pragma once

#include <memory>
#include <string>

#include "redis_cache/redis_settings.h"

struct redisContext;

namespace nereid::redis_cache {

// Thread-safe once made.
class Tls {
 public:
  virtual ~Tls() = default;
  // Secures a connection that was just made. Empty, or why not.
  virtual std::string Secure(redisContext& connection) = 0;
};

// Whether TLS was set up, or why not.
struct TlsResult {
  std::unique_ptr<Tls> tls;
  std::string error;  // where tls is null
};

// Needs settings.is_enabled.
TlsResult MakeTls(const TlsSettings& settings);

}  // namespace nereid::redis_cache
