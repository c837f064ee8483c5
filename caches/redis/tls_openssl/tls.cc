// SPDX-License-Identifier: Apache-2.0
#include "redis_cache/tls.h"

#include <hiredis.h>
#include <hiredis_ssl.h>

namespace nereid::redis_cache {
namespace {

const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

// TLS by hiredis and OpenSSL.
class OpensslTls final : public Tls {
 public:
  explicit OpensslTls(redisSSLContext* context) : context_(context) {}
  ~OpensslTls() override { redisFreeSSLContext(context_); }
  OpensslTls(const OpensslTls&) = delete;
  OpensslTls& operator=(const OpensslTls&) = delete;

  std::string Secure(redisContext& connection) override {
    if (redisInitiateSSLWithContext(&connection, context_) == REDIS_OK) return {};
    return connection.err != 0 ? connection.errstr : "the TLS handshake failed";
  }

 private:
  redisSSLContext* const context_;
};

}  // namespace

TlsResult MakeTls(const TlsSettings& settings) {
  redisInitOpenSSL();
  redisSSLContextError error = REDIS_SSL_CTX_NONE;
  redisSSLContext* const context = redisCreateSSLContext(
      OrNull(settings.ca_certificate), OrNull(settings.ca_folder), OrNull(settings.certificate),
      OrNull(settings.key), OrNull(settings.server_name), &error);
  if (context == nullptr) return {nullptr, redisSSLContextGetError(error)};
  return {std::make_unique<OpensslTls>(context), {}};
}

}  // namespace nereid::redis_cache
