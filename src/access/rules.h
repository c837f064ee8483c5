// SPDX-License-Identifier: Apache-2.0
// What the file of --api-keys says (docs/access.md): who may do what, by which credentials.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/callers.h"
#include "access/crypto.h"
#include "access/grant.h"
#include "access/scope.h"
#include "base/status.h"

namespace nereid::access {

// An API key, of which only the hash is known.
struct ApiKey {
  Digest sha256;
  GrantRef grant;
};

// Clients with a certificate whose subject or one of whose names fits.
struct CertificateRule {
  std::string subject;  // a pattern; empty: `name` counts
  std::string name;     // a pattern such as "DNS:*.example.com"
  GrantRef grant;
};

// An issuer of tokens.
struct TokenRule {
  std::string issuer;
  std::vector<std::string> audiences;  // one of which a token must be for
  std::string keys;                    // the file or URL of the key set
  std::string scope_claim = "scope";
  std::map<std::string, ScopeSet, std::less<>> scopes;  // by a value of that claim
  std::string models_claim;                             // empty: `models` counts alone
  ModelPatterns models;
  int64_t leeway_s = 60;
  core::CallerLimits limits;  // of each subject
};

// Whether the key set of a rule comes from the network.
bool IsUrl(std::string_view keys);

// The whole file. Immutable once read.
struct Rules {
  std::vector<ApiKey> keys;
  std::vector<CertificateRule> certificates;
  std::vector<TokenRule> tokens;
  GrantRef anonymous;  // of requests without credentials
  bool protects_health = false;
};

// The error names the place in the file and what was expected there.
base::Result<Rules> ParseRules(std::string_view text, CallerTable& callers);

// Seconds since 1970 of "2027-01-31" or "2027-01-31T12:00:00Z"; nothing for any other text.
std::optional<int64_t> ParseTime(std::string_view text);

}  // namespace nereid::access
