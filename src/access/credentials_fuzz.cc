// SPDX-License-Identifier: Apache-2.0
// Fuzzes what reads files of keys, key sets and tokens: each input is accepted or refused with a
// reason, and no token is accepted, because none has the signature of the only key.
#include "access/crypto.h"
#include "access/rules.h"
#include "access/token.h"
#include "base/check.h"
#include "base/text_encodings.h"
#include "fuzz/fuzz.h"

namespace {

using nereid::access::CallerTable;
using nereid::access::CheckToken;
using nereid::access::ParseRules;
using nereid::access::ReadToken;
using nereid::access::TokenKeys;
using nereid::access::TokenRule;
using nereid::access::TokenVerdict;
using nereid::base::EncodeBase64Url;

// The example of RFC 8037, whose private key signs nothing here.
constexpr const char* kKeySet = R"({"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k",)"
                                R"("x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})";
constexpr const char* kHead = R"({"alg":"EdDSA","kid":"k"})";
constexpr const char* kPayload =
    R"({"iss":"i","aud":["us"],"sub":"ann","exp":1900000000,"scope":"a"})";

void Verify(std::string_view text) {
  static const TokenKeys kKeys = TokenKeys::Parse(kKeySet).value();
  const auto token = ReadToken(text);
  if (!token) return;
  CallerTable callers;
  TokenRule rule;
  rule.issuer = "i";
  rule.audiences = {"us"};
  NEREID_CHECK(CheckToken(*token, rule, kKeys, 1'800'000'000, callers).verdict !=
               TokenVerdict::kGood);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string token = EncodeBase64Url(kHead) + "." + EncodeBase64Url(kPayload) + "." +
                            EncodeBase64Url(std::string(64, 's'));
  return {
      R"({"keys":[{"id":"a","sha256":")" + std::string(64, 'a') +
          R"(","scopes":["infer"],"models":["m*"],"expires":"2027-01-31T12:00:00Z",)"
          R"("limits":{"weight":2,"in_flight":1}}],"anonymous":{"scopes":["metrics"]},)"
          R"("certificates":[{"id":"b","name":"DNS:x","scopes":"admin"}],"protect_health":true,)"
          R"("tokens":[{"issuer":"i","audience":"us","keys":"k","scopes":{"a":["infer"]},)"
          R"("leeway_seconds":5}]})",
      kKeySet,
      R"({"keys":[{"kty":"RSA","n":")" + EncodeBase64Url(std::string(256, 'n')) +
          R"(","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})",
      token,
      kHead,
      kPayload,
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CallerTable callers;
  const auto rules = ParseRules(text, callers);
  NEREID_CHECK(rules.ok() || !rules.status().message().empty());
  const auto keys = TokenKeys::Parse(text);
  NEREID_CHECK(keys.ok() || !keys.status().message().empty());
  Verify(text);
  Verify(EncodeBase64Url(text) + "." + EncodeBase64Url(kPayload) + ".AAAA");
  Verify(EncodeBase64Url(kHead) + "." + EncodeBase64Url(text) + ".AAAA");
  return 0;
}
