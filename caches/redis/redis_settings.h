// SPDX-License-Identifier: Apache-2.0
// The address of Redis and the settings of its connections, as in Triton's Redis cache.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <variant>

namespace nereid::redis_cache {

// How the connection is encrypted.
struct TlsSettings {
  bool is_enabled = false;
  std::string certificate;
  std::string key;
  std::string ca_certificate;
  std::string ca_folder;
  std::string server_name;
};

// The settings of --cache-config=redis,….
struct RedisSettings {
  std::string host;
  int port = 0;
  std::string user;
  std::string password;
  int database = 0;
  // 0: wait forever. Unlike Triton's, the defaults are finite, because every request waits for a
  // look-up.
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds socket_timeout{1000};
  // The time to wait for a connection while all of them are in use.
  std::chrono::milliseconds wait_timeout{1000};
  size_t pool_size = 1;
  TlsSettings tls;
};

// Parses `json`, which the server makes of its options. User and password may also be in the
// environment, as TRITONCACHE_REDIS_USERNAME and TRITONCACHE_REDIS_PASSWORD. Returns the reason if
// the settings cannot be used.
std::variant<RedisSettings, std::string> ReadSettings(const char* json);

}  // namespace nereid::redis_cache
