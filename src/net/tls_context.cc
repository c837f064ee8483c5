// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <openssl/err.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/tls_channel.h"

namespace nereid::net {
namespace {

constexpr uint64_t kLookEveryNs = 1'000'000'000;

// Ciphers with forward secrecy and authenticated encryption, as HTTP/2 requires. TLS 1.3 has no
// others.
constexpr const char* kCiphers12 = "ECDHE+AESGCM:ECDHE+CHACHA20";

// Returns the errors since they were last cleared: the system's message if there is one.
std::string TakeError() {
  std::string text = "it cannot be used";
  bool is_of_system = false;
  while (const unsigned long error = ERR_get_error()) {
    const char* const reason = ERR_reason_error_string(error);
    if (ERR_SYSTEM_ERROR(error)) {
      text = std::strerror(ERR_GET_REASON(error));
      is_of_system = true;
    } else if (reason != nullptr && !is_of_system) {
      text = reason;
    }
  }
  return text;
}

// Returns the names of the PEM blocks in a file, such as "CERTIFICATE"; only the first ones of a
// large file.
std::vector<std::string> PemBlocks(const std::string& file) {
  constexpr size_t kMaxBytes = 256 << 10;
  constexpr std::string_view kBegin = "-----BEGIN ";
  std::string text(kMaxBytes, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  std::vector<std::string> names;
  for (size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    names.push_back(text.substr(at, std::min<size_t>(text.find("-----", at) - at, 64)));
  }
  return names;
}

// Describes OpenSSL's reason, and what the file contains instead of a block whose name ends with
// `block`.
base::Status FileError(std::string_view what, const std::string& file, std::string_view block) {
  std::string text = fmt::format("{} '{}': {}", what, file, TakeError());
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return base::InvalidArgumentError(text);
  const std::vector<std::string> names = PemBlocks(file);
  if (std::ranges::none_of(names, [&](const auto& name) { return name.ends_with(block); })) {
    text +=
        fmt::format("; found {}, expected '-----BEGIN {}-----'",
                    names.empty() ? "no PEM block" : "a block of '" + names.front() + "'", block);
  } else if (names.front().starts_with("ENCRYPTED")) {
    text += "; the key is encrypted, expected one without a password";
  }
  return base::InvalidArgumentError(std::move(text));
}

void AddToStamp(const std::string& file, uint64_t* words) {
  struct stat info{};
  if (file.empty() || ::stat(file.c_str(), &info) != 0) return;
  words[0] = static_cast<uint64_t>(info.st_ino) ^ static_cast<uint64_t>(info.st_dev) << 40;
  words[1] = static_cast<uint64_t>(info.st_size);
  words[2] = static_cast<uint64_t>(info.st_mtim.tv_sec);
  words[3] = static_cast<uint64_t>(info.st_mtim.tv_nsec) + 1;
}

constexpr std::string_view kCertificate = "CERTIFICATE";

// A server cannot ask for the password of a key.
int NoPassword(char*, int, int, void*) { return 0; }

}  // namespace

TlsContext::TlsContext(const TlsOptions& options, std::string_view protocol)
    : options_(options),
      protocol_(std::string(1, static_cast<char>(protocol.size())).append(protocol)) {}

TlsContext::~TlsContext() = default;

base::Result<std::unique_ptr<TlsContext>> TlsContext::Create(const TlsOptions& options,
                                                             std::string_view protocol) {
  std::unique_ptr<TlsContext> made(new TlsContext(options, protocol));
  base::MutexLock lock(made->mutex_);
  made->stamp_ = made->ReadStamp();
  NEREID_ASSIGN_OR_RETURN(made->current_, made->Load());
  made->next_look_ns_.store(base::NowNs() + kLookEveryNs);
  return made;
}

TlsContext::Stamp TlsContext::ReadStamp() const {
  Stamp stamp;
  AddToStamp(options_.certificate_file, &stamp.words[0]);
  AddToStamp(options_.key_file, &stamp.words[4]);
  AddToStamp(options_.client_roots_file, &stamp.words[8]);
  return stamp;
}

base::Result<std::shared_ptr<SSL_CTX>> TlsContext::Load() const {
  ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX* const ctx = context.get();
  if (ctx == nullptr || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(ctx, kCiphers12) != 1) {
    return base::InternalError("cannot set up TLS: " + TakeError());
  }
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);  // tickets need no memory here
  SSL_CTX_set_read_ahead(ctx, 1);
  SSL_CTX_set_default_passwd_cb(ctx, NoPassword);
  SSL_CTX_set_alpn_select_cb(ctx, &TlsContext::SelectProtocol, const_cast<TlsContext*>(this));
  constexpr unsigned char kSessionContext[] = "nereid";
  SSL_CTX_set_session_id_context(ctx, kSessionContext, sizeof kSessionContext - 1);

  if (SSL_CTX_use_certificate_chain_file(ctx, options_.certificate_file.c_str()) != 1) {
    return FileError("server certificate", options_.certificate_file, kCertificate);
  }
  if (SSL_CTX_use_PrivateKey_file(ctx, options_.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(ctx) != 1) {
    const base::Status status = FileError("server key", options_.key_file, "PRIVATE KEY");
    if (status.message().find("mismatch") == std::string_view::npos) return status;
    return base::InvalidArgumentError(fmt::format("{}; it is not the key of the certificate '{}'",
                                                  status.message(), options_.certificate_file));
  }
  if (!options_.client_roots_file.empty()) {
    const char* const file = options_.client_roots_file.c_str();
    STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(file);
    if (names == nullptr || SSL_CTX_load_verify_locations(ctx, file, nullptr) != 1) {
      sk_X509_NAME_pop_free(names, X509_NAME_free);
      return FileError("root certificate", options_.client_roots_file, kCertificate);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

int TlsContext::SelectProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                               const unsigned char* in, unsigned in_size, void* self) {
  const std::string& ours = static_cast<TlsContext*>(self)->protocol_;
  unsigned char* selected = nullptr;
  const int result = SSL_select_next_proto(&selected, out_size,
                                           reinterpret_cast<const unsigned char*>(ours.data()),
                                           static_cast<unsigned>(ours.size()), in, in_size);
  *out = selected;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void TlsContext::ReloadIfChanged() {
  const uint64_t now_ns = base::NowNs();
  uint64_t due_ns = next_look_ns_.load();
  if (now_ns < due_ns || !next_look_ns_.compare_exchange_strong(due_ns, now_ns + kLookEveryNs)) {
    return;
  }
  // Read before the files: if they change meanwhile, the next check finds them changed again.
  const Stamp stamp = ReadStamp();
  {
    base::MutexLock lock(mutex_);
    if (stamp == stamp_) return;
    stamp_ = stamp;
  }
  auto loaded = Load();
  Count(loaded.ok());
  if (!loaded.ok()) {
    NEREID_LOG(kError, "the changed TLS files cannot be used, the old ones stay in use: {}",
               loaded.status().message());
    return;
  }
  NEREID_LOG(kInfo, "TLS certificate '{}' was read again", options_.certificate_file);
  base::MutexLock lock(mutex_);
  current_ = std::move(loaded).value();
}

void TlsContext::Count(bool is_good) {
  bool was_stale = false;
  {
    base::MutexLock lock(mutex_);
    was_stale = std::exchange(is_stale_, !is_good);
  }
  if (options_.reloads == nullptr) return;
  (is_good ? options_.reloads->successes : options_.reloads->failures).fetch_add(1);
  if (was_stale && is_good) options_.reloads->stale_listeners.fetch_sub(1);
  if (!was_stale && !is_good) options_.reloads->stale_listeners.fetch_add(1);
}

std::unique_ptr<TlsChannel> TlsContext::NewChannel(int socket) {
  ReloadIfChanged();
  std::shared_ptr<SSL_CTX> context;
  {
    base::MutexLock lock(mutex_);
    context = current_;
  }
  return TlsChannel::Create(context.get(), socket);
}

}  // namespace nereid::net
