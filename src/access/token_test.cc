// SPDX-License-Identifier: Apache-2.0
#include "access/token.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "access/crypto.h"
#include "access/testing/tokens.h"
#include "base/text_encodings.h"

namespace nereid::access {
namespace {

using base::EncodeBase64Url;

constexpr int64_t kNow = 1'800'000'000;
constexpr Algorithm kAll[] = {Algorithm::kRs256, Algorithm::kEs256, Algorithm::kEdDsa};

std::string Payload(const std::string& more = "", int64_t expires = kNow + 60) {
  return fmt::format(R"({{"iss":"i","aud":"us","sub":"ann","scope":"a b","exp":{}{}}})", expires,
                     more);
}

class Tokens : public testing::Test {
 protected:
  Tokens() {
    rule_.issuer = "i";
    rule_.audiences = {"us", "them"};
    rule_.scopes = {{"a", {Scope::kInfer}}, {"b", {Scope::kMetadata}}, {"c", {Scope::kAdmin}}};
  }

  CheckedToken Check(std::string_view token, const TestIssuer& issuer) {
    const auto read = ReadToken(token);
    if (!read) return {TokenVerdict::kInvalid, "malformed", nullptr};
    const auto keys = TokenKeys::Parse(issuer.KeySet());
    EXPECT_TRUE(keys.ok()) << keys.status().message();
    return CheckToken(*read, rule_, *keys, kNow, callers_);
  }
  CheckedToken CheckPayload(const std::string& payload) {
    return Check(issuer_.Token(payload), issuer_);
  }

  TokenRule rule_;
  CallerTable callers_;
  const TestIssuer issuer_{Algorithm::kEdDsa};
};

TEST_F(Tokens, OfEachAlgorithmAreVerified) {
  for (const Algorithm algorithm : kAll) {
    const TestIssuer issuer(algorithm);
    const CheckedToken checked = Check(issuer.Token(Payload()), issuer);
    ASSERT_EQ(checked.verdict, TokenVerdict::kGood) << checked.reason;
    EXPECT_EQ(checked.grant->caller->id, "i ann");
    EXPECT_EQ(checked.grant->scopes, ScopeSet({Scope::kInfer, Scope::kMetadata}));
    EXPECT_EQ(checked.grant->expires_at_s, kNow + 60 + rule_.leeway_s);
    EXPECT_TRUE(checked.grant->models.allows_all());
  }
}

TEST_F(Tokens, SignedByAnotherKeyOfTheSameKindAreRefused) {
  for (const Algorithm algorithm : kAll) {
    const TestIssuer issuer(algorithm);
    const TestIssuer other(algorithm);
    EXPECT_EQ(Check(other.Token(Payload()), issuer).reason, "the signature is wrong");
  }
}

TEST_F(Tokens, OfWhichAnyCharacterWasChangedAreRefused) {
  for (const Algorithm algorithm : {Algorithm::kEs256, Algorithm::kEdDsa}) {
    const TestIssuer issuer(algorithm);
    const std::string token = issuer.Token(Payload());
    for (size_t i = 0; i < token.size(); ++i) {
      std::string changed = token;
      changed[i] = changed[i] == 'A' ? 'B' : 'A';
      EXPECT_NE(Check(changed, issuer).verdict, TokenVerdict::kGood) << i;
    }
  }
}

TEST_F(Tokens, WithoutASignatureAreRefused) {
  for (const char* const name : {"none", "None", "NONE", "", "HS256", "HS512", "RS512", "PS256"}) {
    const std::string head = fmt::format(R"({{"alg":"{}","kid":"k1"}})", name);
    const std::string start = EncodeBase64Url(head) + "." + EncodeBase64Url(Payload());
    EXPECT_FALSE(ReadToken(start + "."));
    EXPECT_FALSE(ReadToken(start + "." + EncodeBase64Url("x"))) << name;
    EXPECT_FALSE(ReadToken(start));
  }
}

// The classic confusion: the public key of an RSA signature used as the secret of a symmetric one.
TEST_F(Tokens, SignedSymmetricallyWithThePublicKeyAreRefused) {
  const TestIssuer issuer(Algorithm::kRs256);
  for (const char* const name : {"HS256", "RS256"}) {
    const std::string text = EncodeBase64Url(fmt::format(R"({{"alg":"{}","kid":"k1"}})", name)) +
                             "." + EncodeBase64Url(Payload());
    const std::string secret = issuer.Jwk();
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
    const std::string token =
        text + "." + EncodeBase64Url({reinterpret_cast<const char*>(mac), size});
    EXPECT_NE(Check(token, issuer).verdict, TokenVerdict::kGood);
  }
}

TEST_F(Tokens, ThatNameTheAlgorithmOfAnotherKindOfKeyAreRefused) {
  for (const Algorithm algorithm : kAll) {
    const TestIssuer issuer(algorithm);
    for (const char* const name : {"RS256", "ES256", "EdDSA"}) {
      const auto head = fmt::format(R"({{"alg":"{}","kid":"k1"}})", name);
      const bool is_own = FindAlgorithm(name) == algorithm;
      const CheckedToken checked = Check(issuer.Token(Payload(), head), issuer);
      EXPECT_EQ(checked.verdict, is_own ? TokenVerdict::kGood : TokenVerdict::kUnknownKey);
    }
  }
}

TEST_F(Tokens, WithoutAKeyIdAreVerifiedByTheOnlyKey) {
  const std::string token = issuer_.Token(Payload(), R"({"alg":"EdDSA"})");
  EXPECT_EQ(Check(token, issuer_).verdict, TokenVerdict::kGood);
  const TestIssuer second(Algorithm::kEdDsa, "k2");
  const auto both = TokenKeys::Parse("{\"keys\": [" + issuer_.Jwk() + "," + second.Jwk() + "]}");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(CheckToken(*ReadToken(token), rule_, *both, kNow, callers_).verdict,
            TokenVerdict::kUnknownKey);
  EXPECT_EQ(CheckToken(*ReadToken(second.Token(Payload())), rule_, *both, kNow, callers_).verdict,
            TokenVerdict::kGood);
}

TEST_F(Tokens, ThatNeedAnUnknownExtensionAreRefused) {
  EXPECT_FALSE(ReadToken(
      issuer_.Token(Payload(), R"({"alg":"EdDSA","kid":"k1","crit":["b64"],"b64":false})")));
}

TEST_F(Tokens, AreGoodUntilTheyExpireAndALittleLonger) {
  const int64_t leeway = rule_.leeway_s;
  EXPECT_EQ(CheckPayload(Payload("", kNow - leeway + 1)).verdict, TokenVerdict::kGood);
  EXPECT_EQ(CheckPayload(Payload("", kNow - leeway)).verdict, TokenVerdict::kExpired);
  const auto begins = [](int64_t time) { return fmt::format(R"(,"nbf":{})", time); };
  EXPECT_EQ(CheckPayload(Payload(begins(kNow + leeway))).verdict, TokenVerdict::kGood);
  EXPECT_EQ(CheckPayload(Payload(begins(kNow + leeway + 1))).reason, "the token is not valid yet");
}

TEST_F(Tokens, WithTimesThatAreNoneAreRefused) {
  for (const char* const time : {"\"1900000000\"", "-1", "1e300", "null", "true", "[]"}) {
    const std::string payload =
        fmt::format(R"({{"iss":"i","aud":"us","sub":"ann","exp":{}}})", time);
    EXPECT_NE(CheckPayload(payload).verdict, TokenVerdict::kGood) << time;
  }
  EXPECT_NE(CheckPayload(R"({"iss":"i","aud":"us","sub":"ann"})").verdict, TokenVerdict::kGood);
  EXPECT_EQ(CheckPayload(R"({"iss":"i","aud":"us","sub":"ann","exp":1900000000.5})").verdict,
            TokenVerdict::kGood);
}

TEST_F(Tokens, MustBeFromTheIssuerAndForUs) {
  const auto with = [](const char* claims) {
    return fmt::format(R"({{{},"sub":"ann","exp":{}}})", claims, kNow + 60);
  };
  EXPECT_EQ(CheckPayload(with(R"("iss":"i","aud":["x","them"])")).verdict, TokenVerdict::kGood);
  EXPECT_EQ(CheckPayload(with(R"("iss":"j","aud":"us")")).reason, "the issuer is unknown");
  for (const char* const claims :
       {R"("iss":"i")", R"("iss":"i","aud":"other")", R"("iss":"i","aud":[])",
        R"("iss":"i","aud":["usx"])", R"("iss":"i","aud":1)", R"("iss":"i","aud":{"us":"us"})"}) {
    EXPECT_EQ(CheckPayload(with(claims)).reason, "the token is for another audience") << claims;
  }
}

TEST_F(Tokens, SayWhoSendsThem) {
  for (const std::string& subject : {std::string("\"\""), std::string("1"), std::string("null"),
                                     '"' + std::string(257, 'a') + '"'}) {
    const std::string payload =
        fmt::format(R"({{"iss":"i","aud":"us","exp":{},"sub":{}}})", kNow + 60, subject);
    EXPECT_EQ(CheckPayload(payload).reason, "the token has no subject") << subject;
  }
}

TEST_F(Tokens, GiveOnlyTheScopesThatTheRuleKnows) {
  const auto scopes = [this](const char* claim) {
    const std::string payload = fmt::format(
        R"({{"iss":"i","aud":"us","sub":"ann","exp":{},"scope":{}}})", kNow + 60, claim);
    return CheckPayload(payload).grant->scopes;
  };
  EXPECT_EQ(scopes(R"("a")"), ScopeSet({Scope::kInfer}));
  EXPECT_EQ(scopes(R"(" b  a ")"), ScopeSet({Scope::kInfer, Scope::kMetadata}));
  EXPECT_EQ(scopes(R"(["b", 1, null])"), ScopeSet({Scope::kMetadata}));
  EXPECT_TRUE(scopes(R"("admin infer ab")").empty());
  EXPECT_TRUE(scopes("{}").empty());
  EXPECT_TRUE(scopes("null").empty());
}

TEST_F(Tokens, CanNameTheModelsTheyAreFor) {
  rule_.models_claim = "models";
  const CheckedToken some = CheckPayload(Payload(R"(,"models":["a","b*"])"));
  ASSERT_EQ(some.verdict, TokenVerdict::kGood);
  EXPECT_TRUE(some.grant->models.Allows("bc"));
  EXPECT_FALSE(some.grant->models.Allows("c"));
  for (const char* const none : {"", R"(,"models":[])", R"(,"models":"")", R"(,"models":1)"}) {
    EXPECT_NE(CheckPayload(Payload(none)).verdict, TokenVerdict::kGood) << none;
  }
}

TEST_F(Tokens, ThatAreMalformedAreRefused) {
  const std::string good = issuer_.Token(Payload());
  for (const std::string& bad :
       {std::string(), std::string(".."), std::string("..."), good + ".", "." + good, good + "=",
        good + "\n", std::string(70'000, 'A') + "..", "Bearer " + good, issuer_.Token("[]"),
        issuer_.Token("{"), issuer_.Token(std::string(30'000, '[')),
        issuer_.Token("{\"iss\":" + std::string(30'000, '[')), issuer_.Token(Payload(), "[]"),
        issuer_.Token(Payload(), R"({"alg":1})"), issuer_.Token(Payload(), R"({"alg":["EdDSA"]})"),
        issuer_.Token(R"({"iss":1})"), issuer_.Token("{\"iss\":\"\xff\"}")}) {
    EXPECT_FALSE(ReadToken(bad)) << bad.substr(0, 60);
  }
}

TEST(TokenKeys, AreReadFromASet) {
  const TestIssuer rsa(Algorithm::kRs256, "r");
  const TestIssuer ec(Algorithm::kEs256, "e");
  const auto keys =
      TokenKeys::Parse(R"({"keys": [{"kty":"oct","k":"c2VjcmV0"}, {"kty":"EC","crv":"P-384"}, )" +
                       rsa.Jwk() + "," + ec.Jwk() + "]}");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(keys->size(), 2u);
}

TEST(TokenKeys, ThatAreForSomethingElseAreLeftOut) {
  const std::string jwk = TestIssuer(Algorithm::kRs256).Jwk();
  const auto with = [&jwk](const std::string& more) {
    return TokenKeys::Parse("{\"keys\": [" + jwk.substr(0, jwk.size() - 1) + more + "}]}");
  };
  EXPECT_TRUE(with(R"(,"use":"sig","alg":"RS256")").ok());
  EXPECT_FALSE(with(R"(,"use":"enc")").ok());
  EXPECT_FALSE(with(R"(,"alg":"HS256")").ok());
  EXPECT_FALSE(with(R"(,"alg":"RS512")").ok());
}

TEST(TokenKeys, ThatAreWeakOrMalformedAreRefused) {
  EXPECT_FALSE(TokenKeys::Parse(TestIssuer(Algorithm::kRs256, "k", 1024).KeySet()).ok());
  const std::string point = EncodeBase64Url(std::string(32, '\1'));
  for (const std::string& jwk :
       {std::string(R"({"kty":"RSA"})"), std::string(R"({"kty":"RSA","n":"AQAB","e":"AQAB"})"),
        R"({"kty":"RSA","e":"AQ","n":")" + EncodeBase64Url(std::string(256, '\xff')) + "\"}",
        R"({"kty":"RSA","e":"AQAB","n":")" + EncodeBase64Url(std::string(256, '\0')) + "\"}",
        R"({"kty":"RSA","e":"AQAB","n":")" + EncodeBase64Url(std::string(3000, '\xff')) + "\"}",
        // Not on the curve, and too short.
        R"({"kty":"EC","crv":"P-256","x":")" + point + R"(","y":")" + point + "\"}",
        R"({"kty":"EC","crv":"P-256","x":")" + point + R"(","y":""})",
        std::string(R"({"kty":"OKP","crv":"Ed25519","x":"AAAA"})"),
        std::string(R"({"kty":"OKP","crv":"Ed25519","x":1})"), std::string("1")}) {
    EXPECT_FALSE(TokenKeys::Parse("{\"keys\": [" + jwk + "]}").ok()) << jwk.substr(0, 80);
  }
  for (const char* const text : {"", "{}", "[]", "{\"keys\": {}}", "{\"keys\": []}"}) {
    EXPECT_FALSE(TokenKeys::Parse(text).ok()) << text;
  }
  EXPECT_FALSE(TokenKeys::Parse(std::string(300'000, '[')).ok());
}

}  // namespace
}  // namespace nereid::access
