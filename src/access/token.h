// SPDX-License-Identifier: Apache-2.0
// Bearer tokens of other issuers: JSON Web Tokens (RFC 7519) that are signed with a public key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "access/callers.h"
#include "access/grant.h"
#include "access/rules.h"
#include "access/token_keys.h"

namespace nereid::access {

// Whether a credential has the form of a token: three parts with points between them.
bool LooksLikeToken(std::string_view credential);

// A token that has been taken apart, but not verified: nothing in it may be believed yet.
struct UnverifiedToken {
  Algorithm algorithm = Algorithm::kRs256;
  std::optional<std::string> key_id;
  std::string issuer;
  std::string_view signed_text;  // a view of the token
  std::string signature;
  std::string payload;  // a JSON object
};

// Nothing if the token is malformed, is signed by another algorithm than ours, or needs an
// extension (RFC 7515, 4.1.11).
std::optional<UnverifiedToken> ReadToken(std::string_view token);

enum class TokenVerdict : uint8_t { kGood, kInvalid, kExpired, kUnknownKey };

// The outcome of a check. Anything but kGood has the reason, for the log and for the client.
struct CheckedToken {
  TokenVerdict verdict = TokenVerdict::kInvalid;
  std::string_view reason;
  GrantRef grant;
};

// Verifies the token of the rule's issuer with the issuer's keys, and reads what it permits.
CheckedToken CheckToken(const UnverifiedToken& token, const TokenRule& rule, const TokenKeys& keys,
                        int64_t now_s, CallerTable& callers);

}  // namespace nereid::access
