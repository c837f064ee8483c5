// SPDX-License-Identifier: Apache-2.0
// An issuer of tokens, for tests: keys of each kind that is accepted, and tokens signed with them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "access/token_keys.h"

namespace nereid::access {

class TestIssuer {
 public:
  explicit TestIssuer(Algorithm algorithm, std::string id = "k1", unsigned rsa_bits = 2048);

  // The public key as a member of a set, and a set of this key alone.
  std::string Jwk() const;
  std::string KeySet() const { return "{\"keys\": [" + Jwk() + "]}"; }
  // A token with this payload; `head` replaces the usual one.
  std::string Token(std::string_view payload, std::string_view head = {}) const;
  std::string Sign(std::string_view text) const;

 private:
  const Algorithm algorithm_;
  const std::string id_;
  std::shared_ptr<evp_pkey_st> key_;
};

}  // namespace nereid::access
