// SPDX-License-Identifier: Apache-2.0
// TLS for a server's connections, by OpenSSL: at least version 1.2, with modern ciphers, and with
// client certificates if configured.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace nereid::net {

// What became of changed files of all listeners that count here.
struct TlsReloads {
  std::atomic<uint64_t> successes{0};
  std::atomic<uint64_t> failures{0};
  // The listeners whose files are not the ones in use, because they cannot be used.
  std::atomic<uint64_t> stale_listeners{0};
};

// Off if `certificate_file` is empty. Files are PEM; they are read again when they change (checked
// when a client connects, at most once a second), and the old ones stay in use while new ones are
// invalid or do not match.
struct TlsOptions {
  std::string certificate_file;  // followed by its chain
  std::string key_file;
  // Clients must present a certificate of one of these authorities. Empty: none is requested.
  std::string client_roots_file;
  std::chrono::milliseconds handshake_timeout{10'000};
  TlsReloads* reloads = nullptr;  // null: nobody counts; else it outlives the server

  bool is_on() const { return !certificate_file.empty(); }
};

}  // namespace nereid::net
