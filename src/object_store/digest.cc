// SPDX-License-Identifier: Apache-2.0
#include "object_store/digest.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/text_encodings.h"

namespace nereid::object_store {
namespace {

// Deleter for OpenSSL's objects.
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

// Forgets the errors of OpenSSL on this thread, which others would otherwise find.
struct ForgetErrors {
  ~ForgetErrors() { ERR_clear_error(); }
};

// There is nobody to type the password of a key.
int NoPassword(char*, int, int, void*) { return -1; }

std::string_view View(const unsigned char* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::string Sha256Hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return base::ToHex(View(digest.data(), size));
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return std::string(View(digest.data(), size));
}

std::string Base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a zero
  text.resize(static_cast<size_t>(EVP_EncodeBlock(
      reinterpret_cast<unsigned char*>(text.data()),
      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()))));
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  const ForgetErrors guard;
  // OpenSSL accepts blanks around it.
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t digits = std::min(text.find_first_not_of(kAlphabet), text.size());
  const size_t padding = text.size() - digits;
  if (text.size() % 4 != 0 || padding > 2) return std::nullopt;
  if (text.substr(digits) != std::string_view("==").substr(0, padding)) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) < 0) {
    return std::nullopt;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

base::Result<std::string> SignRs256(const std::string& pem, std::string_view text) {
  const ForgetErrors guard;
  const std::unique_ptr<BIO, FreeContext> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<EVP_PKEY, FreeContext> key(
      bio == nullptr ? nullptr : PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA) {
    return base::InvalidArgumentError("the private key is not an RSA key in the format PEM");
  }
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  std::string signature(static_cast<size_t>(EVP_PKEY_size(key.get())), '\0');
  size_t size = signature.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1) {
    return base::InternalError("OpenSSL cannot sign with the private key");
  }
  signature.resize(size);
  return signature;
}

std::string Md5OfFile(int fd, uint64_t size) {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1) return {};
  std::vector<char> piece(256 * 1024);
  for (uint64_t at = 0; at < size;) {
    const ssize_t count = ::pread(fd, piece.data(), std::min<uint64_t>(piece.size(), size - at),
                                  static_cast<off_t>(at));
    if (count <= 0) return {};
    EVP_DigestUpdate(context.get(), piece.data(), static_cast<size_t>(count));
    at += static_cast<uint64_t>(count);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned digest_size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &digest_size);
  return base::ToHex(View(digest.data(), digest_size));
}

}  // namespace nereid::object_store
