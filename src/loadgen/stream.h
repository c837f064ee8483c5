// SPDX-License-Identifier: Apache-2.0
// Connections to a server: TCP or Unix sockets, with or without TLS, that never block.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

struct ssl_ctx_st;
struct ssl_st;

namespace nereid::loadgen {

// Where a server listens. A value type.
class Address {
 public:
  // INVALID_ARGUMENT if the name cannot be resolved.
  static base::Result<Address> Tcp(const std::string& host, const std::string& port);
  // INVALID_ARGUMENT if the path is too long for a socket.
  static base::Result<Address> Unix(const std::string& path);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// The files (PEM) that a TLS connection needs; each may be empty.
struct TlsFiles {
  std::string ca;  // trusted instead of the system's certificates
  std::string cert;
  std::string key;
};

// What TLS connections to one server share. Immutable.
class TlsSettings {
 public:
  // `protocol` is offered by ALPN, for example "h2". `host` is whom the server's certificate must
  // name.
  static base::Result<std::shared_ptr<const TlsSettings>> Create(const TlsFiles& files,
                                                                 std::string_view protocol,
                                                                 std::string host);
  ~TlsSettings();
  TlsSettings(const TlsSettings&) = delete;
  TlsSettings& operator=(const TlsSettings&) = delete;

 private:
  friend class Stream;
  TlsSettings(ssl_ctx_st* context, std::string host) : context_(context), host_(std::move(host)) {}

  ssl_ctx_st* const context_;
  const std::string host_;
};

// A connection. What is sent before it is established waits until it is. Confined to one thread.
class Stream {
 public:
  // What became of an attempt to send or to receive.
  enum class Outcome { kSome, kNothingYet, kEnd };

  Stream() = default;
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;

  // Begins to connect. `tls` may be null. UNAVAILABLE if no server listens, as far as is known
  // already.
  static base::Result<Stream> Connect(const Address& address,
                                      const std::shared_ptr<const TlsSettings>& tls);

  bool is_open() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  // Whether bytes went over the connection, that is, it was once established.
  bool was_established() const { return was_established_; }
  void Close();

  // Each sets `count` to the number of bytes if it returns kSome. After kEnd, `failure` says why.
  Outcome Receive(char* to, size_t room, size_t& count);
  Outcome Send(std::string_view bytes, size_t& count);
  // Whether Receive would return bytes that no poll can see.
  bool has_received() const;

  // Empty: the server has closed the connection in an orderly way.
  const std::string& failure() const { return failure_; }

 private:
  // Releases the TLS part of a connection.
  struct FreeTls {
    void operator()(ssl_st* tls) const;
  };

  Outcome SocketOutcome(ssize_t result, size_t& count);
  Outcome TlsOutcome(int result, size_t& count);

  base::UniqueFd fd_;
  std::unique_ptr<ssl_st, FreeTls> tls_;
  std::shared_ptr<const TlsSettings> settings_;
  bool was_established_ = false;
  std::string failure_;
};

}  // namespace nereid::loadgen
