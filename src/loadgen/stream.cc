// SPDX-License-Identifier: Apache-2.0
#include "loadgen/stream.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace nereid::loadgen {
namespace {

// Returns OpenSSL's reason for the last failure.
std::string TlsReason() {
  const unsigned long error = ERR_peek_last_error();
  const char* const reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "the connection broke off" : reason;
}

int ClampToInt(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

base::Result<Address> Address::Tcp(const std::string& host, const std::string& port) {
  const addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) {
    return base::InvalidArgumentError(
        fmt::format("cannot find {}:{}: {}", host, port, gai_strerror(error)));
  }
  // A server on "localhost" mostly listens on the IPv4 address only.
  const addrinfo* chosen = list;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    if (at->ai_family == AF_INET) {
      chosen = at;
      break;
    }
  }
  Address address;
  std::memcpy(&address.storage_, chosen->ai_addr, chosen->ai_addrlen);
  address.size_ = chosen->ai_addrlen;
  freeaddrinfo(list);
  return address;
}

base::Result<Address> Address::Unix(const std::string& path) {
  sockaddr_un unix_address{};
  if (path.size() >= sizeof unix_address.sun_path) {
    return base::InvalidArgumentError(
        fmt::format("the path '{}' is too long for a Unix socket", path));
  }
  unix_address.sun_family = AF_UNIX;
  std::memcpy(unix_address.sun_path, path.data(), path.size());
  Address address;
  std::memcpy(&address.storage_, &unix_address, sizeof unix_address);
  address.size_ = sizeof unix_address;
  return address;
}

base::Result<std::shared_ptr<const TlsSettings>> TlsSettings::Create(const TlsFiles& files,
                                                                     std::string_view protocol,
                                                                     std::string host) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  std::shared_ptr<const TlsSettings> settings(new TlsSettings(context, std::move(host)));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  std::string offer(1, static_cast<char>(protocol.size()));
  offer += protocol;
  SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(offer.data()),
                          static_cast<unsigned>(offer.size()));
  const auto fails_with = [](const char* option, const std::string& file) {
    return base::InvalidArgumentError(fmt::format("{} '{}': {}", option, file, TlsReason()));
  };
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1) {
    return fails_with("--ca", files.ca);
  }
  if (!files.cert.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, files.cert.c_str()) != 1) {
      return fails_with("--cert", files.cert);
    }
    if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      return fails_with("--key", files.key);
    }
  }
  return settings;
}

TlsSettings::~TlsSettings() { SSL_CTX_free(context_); }

void Stream::FreeTls::operator()(ssl_st* tls) const { SSL_free(tls); }

base::Result<Stream> Stream::Connect(const Address& address,
                                     const std::shared_ptr<const TlsSettings>& tls) {
  Stream stream;
  stream.fd_ =
      base::UniqueFd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!stream.is_open()) return base::UnavailableError(std::strerror(errno));
  if (address.family() != AF_UNIX) {
    const int on = 1;
    setsockopt(stream.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (connect(stream.fd(), address.get(), address.size()) != 0 && errno != EINPROGRESS) {
    return base::UnavailableError(std::strerror(errno));
  }
  if (tls == nullptr) return stream;
  stream.settings_ = tls;
  stream.tls_.reset(SSL_new(tls->context_));
  SSL_set_fd(stream.tls_.get(), stream.fd());
  SSL_set_tlsext_host_name(stream.tls_.get(), tls->host_.c_str());
  // Names that are addresses are compared with the addresses in the certificate.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(stream.tls_.get()), tls->host_.c_str()) != 1) {
    SSL_set1_host(stream.tls_.get(), tls->host_.c_str());
  }
  ERR_clear_error();
  SSL_set_connect_state(stream.tls_.get());
  return stream;
}

void Stream::Close() {
  tls_.reset();
  fd_.Close();
}

Stream::Outcome Stream::SocketOutcome(ssize_t result, size_t& count) {
  if (result > 0) {
    count = static_cast<size_t>(result);
    was_established_ = true;
    return Outcome::kSome;
  }
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) {
    return Outcome::kNothingYet;
  }
  failure_ = result < 0 ? std::strerror(errno) : "";
  return Outcome::kEnd;
}

Stream::Outcome Stream::TlsOutcome(int result, size_t& count) {
  if (result > 0) {
    count = static_cast<size_t>(result);
    was_established_ = true;
    return Outcome::kSome;
  }
  const int saved_errno = errno;
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Outcome::kNothingYet;
    case SSL_ERROR_ZERO_RETURN:
      failure_.clear();
      return Outcome::kEnd;
    case SSL_ERROR_SYSCALL:
      failure_ = saved_errno == 0 ? "" : std::strerror(saved_errno);
      ERR_clear_error();
      return Outcome::kEnd;
    default: {
      const long verified = SSL_get_verify_result(tls_.get());
      failure_ = TlsReason();
      if (verified != X509_V_OK) {
        failure_ += fmt::format(": {}", X509_verify_cert_error_string(verified));
      }
      return Outcome::kEnd;
    }
  }
}

Stream::Outcome Stream::Receive(char* to, size_t room, size_t& count) {
  if (tls_ == nullptr) return SocketOutcome(recv(fd(), to, room, 0), count);
  errno = 0;
  return TlsOutcome(SSL_read(tls_.get(), to, ClampToInt(room)), count);
}

Stream::Outcome Stream::Send(std::string_view bytes, size_t& count) {
  if (tls_ == nullptr) {
    return SocketOutcome(send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), count);
  }
  errno = 0;
  return TlsOutcome(SSL_write(tls_.get(), bytes.data(), ClampToInt(bytes.size())), count);
}

bool Stream::has_received() const { return tls_ != nullptr && SSL_has_pending(tls_.get()) == 1; }

}  // namespace nereid::loadgen
