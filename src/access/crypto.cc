// SPDX-License-Identifier: Apache-2.0
#include "access/crypto.h"

#include <cstring>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "base/text_encodings.h"

namespace nereid::access {
namespace {

int HexValueOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

Digest HashOf(std::string_view bytes) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

// Eight bytes at a time, because a token has a thousand of them and is compared for every request.
bool IsSame(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  constexpr size_t kWord = sizeof(uint64_t);
  uint64_t difference = 0;
  const auto compare_word = [&](size_t at) {
    uint64_t left = 0;
    uint64_t right = 0;
    std::memcpy(&left, a.data() + at, kWord);
    std::memcpy(&right, b.data() + at, kWord);
    difference |= left ^ right;
  };
  if (a.size() < kWord) {
    for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<uint8_t>(a[i] ^ b[i]);
  } else {
    for (size_t at = 0; at + kWord < a.size(); at += kWord) compare_word(at);
    compare_word(a.size() - kWord);  // may overlap the one before
  }
  // The compiler does not know the value before this, so it cannot stop the loops early.
  asm volatile("" : "+r"(difference));
  return difference == 0;
}

std::string ToHex(const Digest& digest) {
  return base::ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::optional<Digest> DigestFromHex(std::string_view text) {
  Digest digest;
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = HexValueOf(text[2 * i]);
    const int low = HexValueOf(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return digest;
}

base::Result<std::string> MakeKey() {
  std::string bytes(32, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    return base::InternalError("the system has no random numbers");
  }
  std::string key = "nrd_" + base::EncodeBase64Url(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

}  // namespace nereid::access
