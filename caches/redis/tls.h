// SPDX-License-Identifier: Apache-2.0
// TLS for connections to Redis. One of two implementations is built: with hiredis' TLS
// (tls_openssl), or without TLS (tls_none), which returns an error.
#pragma once

#include <memory>
#include <string>

#include "redis_cache/redis_settings.h"

struct redisContext;

namespace nereid::redis_cache {

// Secures connections. Thread-safe.
class Tls {
 public:
  virtual ~Tls() = default;
  // Secures a new connection. Returns the error, or an empty text.
  virtual std::string Secure(redisContext& connection) = 0;
};

// The TLS settings, or why they failed.
struct TlsResult {
  std::unique_ptr<Tls> tls;
  std::string error;  // set if tls is null
};

// REQUIRES: settings.is_enabled.
TlsResult MakeTls(const TlsSettings& settings);

}  // namespace nereid::redis_cache
