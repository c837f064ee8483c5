// SPDX-License-Identifier: Apache-2.0
#include "net/tls_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <openssl/bio.h>
#include <openssl/err.h>

#include "base/check.h"
#include "net/peer_certificate.h"

namespace nereid::net {
namespace {

// OpenSSL's own socket BIO raises SIGPIPE; this one does not, and never blocks.
int BioWrite(BIO* bio, const char* data, size_t size, size_t* written) {
  BIO_clear_retry_flags(bio);
  const auto socket = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  ssize_t n;
  do {
    n = ::send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  *written = n > 0 ? static_cast<size_t>(n) : 0;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
  return n > 0 ? 1 : 0;
}

int BioRead(BIO* bio, char* data, size_t size, size_t* got) {
  BIO_clear_retry_flags(bio);
  const auto socket = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  ssize_t n;
  do {
    n = ::recv(socket, data, size, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  *got = n > 0 ? static_cast<size_t>(n) : 0;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return n > 0 ? 1 : 0;
}

long BioControl(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    default:
      return 0;
  }
}

struct BioMethodDeleter {
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};

// Constant once made.
BIO_METHOD* SocketMethod() {
  static const std::unique_ptr<BIO_METHOD, BioMethodDeleter> method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "nereid");
    NEREID_CHECK(made != nullptr);
    BIO_meth_set_write_ex(made, BioWrite);
    BIO_meth_set_read_ex(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    return std::unique_ptr<BIO_METHOD, BioMethodDeleter>(made);
  }();
  return method.get();
}

// Iterates over the bytes of several parts.
class PartReader {
 public:
  PartReader(const iovec* parts, size_t count) : parts_(parts), count_(count) { SkipEmpty(); }

  bool at_end() const { return part_ == count_; }
  // Returns the next bytes, at most `most`: in place if they are contiguous (or are the last),
  // otherwise collected in `scratch`, which has room for `most`.
  std::string_view Peek(size_t most, char* scratch) const {
    const std::string_view here(static_cast<const char*>(parts_[part_].iov_base) + offset_,
                                parts_[part_].iov_len - offset_);
    if (here.size() >= most || part_ + 1 == count_) return here.substr(0, most);
    std::memcpy(scratch, here.data(), here.size());
    size_t size = here.size();
    for (size_t i = part_ + 1; i < count_ && size < most; ++i) {
      const size_t step = std::min(parts_[i].iov_len, most - size);
      if (step > 0) std::memcpy(scratch + size, parts_[i].iov_base, step);
      size += step;
    }
    return {scratch, size};
  }
  void Advance(size_t size) {
    while (size > 0) {
      const size_t step = std::min(size, parts_[part_].iov_len - offset_);
      offset_ += step;
      size -= step;
      SkipEmpty();
    }
  }

 private:
  void SkipEmpty() {
    while (part_ < count_ && offset_ == parts_[part_].iov_len) {
      ++part_;
      offset_ = 0;
    }
  }

  const iovec* const parts_;
  const size_t count_;
  size_t part_ = 0;
  size_t offset_ = 0;
};

}  // namespace

std::unique_ptr<TlsChannel> TlsChannel::Create(SSL_CTX* context, int socket) {
  SSL* const ssl = SSL_new(context);
  BIO* const bio = ssl != nullptr ? BIO_new(SocketMethod()) : nullptr;
  if (bio == nullptr) {
    SSL_free(ssl);
    return nullptr;
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_accept_state(ssl);
  return std::unique_ptr<TlsChannel>(new TlsChannel(ssl));
}

TlsChannel::~TlsChannel() { SSL_free(ssl_); }

TlsChannel::Step TlsChannel::Handshake() {
  base::MutexLock lock(mutex_);
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    is_established_ = true;
    peer_ = ReadPeerIdentity(ssl_);
    return Step::kDone;
  }
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return Step::kWaitForBytes;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWaitForRoom;
    default:
      is_broken_ = true;
      return Step::kFailed;
  }
}

std::string TlsChannel::FailureText() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "the client left";
}

ssize_t TlsChannel::Read(std::byte* into, size_t size) {
  base::MutexLock lock(mutex_);
  if (is_broken_) return kBroken;
  size_t total = 0;
  is_drained_ = false;
  while (total < size) {
    size_t n = 0;
    ERR_clear_error();
    if (SSL_read_ex(ssl_, into + total, size - total, &n) == 1) {
      total += n;
      continue;
    }
    const int error = SSL_get_error(ssl_, 0);
    if (error == SSL_ERROR_WANT_READ) {
      is_drained_ = true;
      break;
    }
    if (error == SSL_ERROR_ZERO_RETURN) return total > 0 ? static_cast<ssize_t>(total) : kEnd;
    is_broken_ = true;
    return total > 0 ? static_cast<ssize_t>(total) : kBroken;
  }
  return static_cast<ssize_t>(total);
}

bool TlsChannel::HasBuffered() {
  base::MutexLock lock(mutex_);
  return !is_drained_;
}

ssize_t TlsChannel::Write(const iovec* parts, size_t count) {
  base::MutexLock lock(mutex_);
  if (is_broken_) return kBroken;
  char scratch[kRecordBytes];
  size_t taken = 0;
  for (PartReader reader(parts, count); !reader.at_end();) {
    const std::string_view piece =
        reader.Peek(blocked_bytes_ > 0 ? blocked_bytes_ : kRecordBytes, scratch);
    if (piece.size() < blocked_bytes_) {
      is_broken_ = true;  // the partly sent record would continue differently
      return kBroken;
    }
    size_t written = 0;
    ERR_clear_error();
    if (SSL_write_ex(ssl_, piece.data(), piece.size(), &written) == 1) {
      blocked_bytes_ = 0;
      taken += written;
      reader.Advance(written);
      continue;
    }
    if (SSL_get_error(ssl_, 0) != SSL_ERROR_WANT_WRITE) {
      is_broken_ = true;
      return kBroken;
    }
    blocked_bytes_ = piece.size();
    break;
  }
  return static_cast<ssize_t>(taken);
}

void TlsChannel::Finish() {
  base::MutexLock lock(mutex_);
  if (!is_established_ || is_broken_ || blocked_bytes_ > 0) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
}

}  // namespace nereid::net
