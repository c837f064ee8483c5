// SPDX-License-Identifier: Apache-2.0
#include "object_store/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace nereid::object_store {
namespace {

// Deleter for OpenSSL's digest context.
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string_view View(const unsigned char* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string Sha256Hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return Hex(View(digest.data(), size));
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return std::string(View(digest.data(), size));
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
  return Hex(View(digest.data(), digest_size));
}

}  // namespace nereid::object_store
