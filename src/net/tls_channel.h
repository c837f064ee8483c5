// SPDX-License-Identifier: Apache-2.0
// TLS over one socket, and what all sockets share: certificate, key, settings. For this module's
// own files, because it uses OpenSSL's types.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/mutex.h"
#include "base/status.h"
#include "net/peer_identity.h"
#include "net/tls.h"

namespace nereid::net {

// The encryption between a connection and its socket, which outlives it. Thread-safe: OpenSSL is
// not, so concurrent reads and writes take turns.
class TlsChannel {
 public:
  // Returns null if memory is exhausted.
  static std::unique_ptr<TlsChannel> Create(SSL_CTX* context, int socket);
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  enum class Step : uint8_t { kDone, kWaitForBytes, kWaitForRoom, kFailed };
  // Continues the handshake as far as possible without waiting.
  Step Handshake();
  // Returns why it failed, for the log.
  std::string FailureText();
  // What the client's certificate says; null if it has shown none. REQUIRES: the handshake is done.
  const PeerIdentity* peer() const { return peer_.get(); }

  static constexpr ssize_t kBroken = -1;
  static constexpr ssize_t kEnd = -2;  // the client has closed its side
  // Fills `into` as far as possible without waiting. Returns the number of bytes, 0 for none yet,
  // or one of the above.
  ssize_t Read(std::byte* into, size_t size);
  // Whether a Read may return bytes although the socket has none.
  bool HasBuffered();

  // Takes bytes of `parts` as far as possible without waiting. Returns how many, or kBroken. What
  // was not taken must come first at the next call.
  ssize_t Write(const iovec* parts, size_t count);

  // Tells the client that nothing follows, so that it can distinguish the end from an attack.
  void Finish();

 private:
  // The maximum plain text of one record.
  static constexpr size_t kRecordBytes = 16 << 10;

  explicit TlsChannel(SSL* ssl) : ssl_(ssl) {}

  // Constant once the handshake is done, which happens before the channel is shared.
  std::unique_ptr<const PeerIdentity> peer_;
  base::Mutex mutex_;
  SSL* const ssl_ NEREID_PT_GUARDED_BY(mutex_);
  bool is_established_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_broken_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_drained_ NEREID_GUARDED_BY(mutex_) = false;
  // Plain bytes of a record that the socket did not take whole. They do not count as taken yet, but
  // must be written again as one record.
  size_t blocked_bytes_ NEREID_GUARDED_BY(mutex_) = 0;
};

// Makes channels. Thread-safe.
class TlsContext {
 public:
  // `protocol` is the ALPN name of the protocol inside. The error says which file is wrong and why.
  static base::Result<std::unique_ptr<TlsContext>> Create(const TlsOptions& options,
                                                          std::string_view protocol);
  ~TlsContext();

  // Makes the channel of a connection that was just accepted. Null if memory is exhausted.
  std::unique_ptr<TlsChannel> NewChannel(int socket);

  std::chrono::milliseconds handshake_timeout() const { return options_.handshake_timeout; }

 private:
  // Identifies a state of the files.
  struct Stamp {
    std::array<uint64_t, 12> words{};
    bool operator==(const Stamp&) const = default;
  };

  TlsContext(const TlsOptions& options, std::string_view protocol);
  Stamp ReadStamp() const;
  base::Result<std::shared_ptr<SSL_CTX>> Load() const;
  void ReloadIfChanged();
  void Count(bool is_good);
  static int SelectProtocol(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                            const unsigned char* in, unsigned in_size, void* self);

  const TlsOptions options_;
  const std::string protocol_;  // after its length, as on the wire
  std::atomic<uint64_t> next_look_ns_{0};
  base::Mutex mutex_;
  std::shared_ptr<SSL_CTX> current_ NEREID_GUARDED_BY(mutex_);
  Stamp stamp_ NEREID_GUARDED_BY(mutex_);
  bool is_stale_ NEREID_GUARDED_BY(mutex_) = false;  // the files were changed into faulty ones
};

}  // namespace nereid::net
