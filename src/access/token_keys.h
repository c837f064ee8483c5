// SPDX-License-Identifier: Apache-2.0
// The public keys with which an issuer's tokens are verified: a JSON Web Key Set (RFC 7517).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// OpenSSL's, whose headers stay out of ours.
struct evp_pkey_st;

namespace nereid::access {

// The algorithms that are accepted. Each belongs to one kind of key, so a token cannot choose how a
// key is used; neither "none" nor a symmetric one is among them.
enum class Algorithm : uint8_t { kRs256, kEs256, kEdDsa };

// Nothing for any other name.
std::optional<Algorithm> FindAlgorithm(std::string_view name);

// Immutable; a copy shares the keys.
class TokenKeys {
 public:
  // Keys of other kinds than those above are left out, and so are keys that are not for signatures.
  // An error if none is left, or if a key is malformed or weak.
  static base::Result<TokenKeys> Parse(std::string_view text);

  enum class Verdict : uint8_t { kGood, kBad, kUnknownKey };
  // Checks a signature by the key of that id and algorithm. Without an id, by the only key of the
  // algorithm.
  Verdict Verify(Algorithm algorithm, std::optional<std::string_view> key_id,
                 std::string_view signed_text, std::string_view signature) const;

  size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::string id;  // may be empty
    Algorithm algorithm;
    std::shared_ptr<evp_pkey_st> key;
  };
  friend struct KeyReader;

  std::vector<Key> keys_;
};

}  // namespace nereid::access
