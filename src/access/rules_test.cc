// SPDX-License-Identifier: Apache-2.0
#include "access/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::access {
namespace {

using testing::HasSubstr;

const std::string kDigest(64, 'a');

std::string Key(const std::string& more) {
  return R"({"keys": [{"id": "ci", "sha256": ")" + kDigest + R"(", "scopes": ["infer"])" + more +
         "}]}";
}

std::string ErrorOf(const std::string& text) {
  CallerTable callers;
  return std::string(ParseRules(text, callers).status().message());
}

TEST(Rules, OfAnEmptyFileAllowNobodyAnything) {
  CallerTable callers;
  const auto rules = ParseRules("{}", callers);
  ASSERT_TRUE(rules.ok());
  EXPECT_TRUE(rules->keys.empty());
  EXPECT_TRUE(rules->anonymous->scopes.empty());
  EXPECT_FALSE(rules->protects_health);
}

TEST(Rules, AreReadWithAllTheirParts) {
  CallerTable callers;
  const auto rules = ParseRules(
      R"({
        "keys": [{"id": "ci", "sha256": ")" +
          kDigest + R"(", "scopes": ["infer", "metadata"],
                  "models": ["resnet*", "bert"], "expires": "2027-01-31T12:00:00Z",
                  "created": "2026-01-01T00:00:00Z",
                  "limits": {"requests_per_second": 2.5, "bytes_per_second": 1e6, "in_flight": 8,
                             "weight": 4}}],
        "certificates": [{"id": "billing", "name": "DNS:*.example.com", "scopes": "infer"},
                         {"id": "ops", "subject": "CN=ops,*", "scopes": ["admin"]}],
        "tokens": [{"issuer": "https://id.example.com", "audience": "nereid",
                    "keys": "https://id.example.com/keys", "scope_claim": "roles",
                    "scopes": {"reader": ["metadata", "metrics"], "user": "infer"},
                    "models_claim": "models", "leeway_seconds": 5}],
        "anonymous": {"scopes": ["metrics"]},
        "protect_health": true
      })",
      callers);
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  const Grant& ci = *rules->keys[0].grant;
  EXPECT_EQ(rules->keys[0].sha256, DigestFromHex(kDigest));
  EXPECT_EQ(ci.caller->id, "ci");
  EXPECT_EQ(ci.scopes, ScopeSet({Scope::kInfer, Scope::kMetadata}));
  EXPECT_TRUE(ci.models.Allows("resnet50"));
  EXPECT_EQ(ci.expires_at_s, 1'801'396'800);
  EXPECT_EQ(ci.caller->limits, (core::CallerLimits{2.5, 1e6, 8, 4}));
  EXPECT_EQ(rules->certificates[0].name, "DNS:*.example.com");
  EXPECT_EQ(rules->certificates[1].subject, "CN=ops,*");
  const TokenRule& token = rules->tokens[0];
  EXPECT_EQ(token.audiences, std::vector<std::string>{"nereid"});
  EXPECT_EQ(token.scope_claim, "roles");
  EXPECT_EQ(token.scopes.at("reader"), ScopeSet({Scope::kMetadata, Scope::kMetrics}));
  EXPECT_EQ(token.leeway_s, 5);
  EXPECT_TRUE(rules->anonymous->scopes.Allows(Scope::kMetrics));
  EXPECT_TRUE(rules->protects_health);
}

TEST(Rules, ThatAreWrongAreRefusedWithTheirPlace) {
  EXPECT_EQ(ErrorOf(""), "expected a JSON object");
  EXPECT_EQ(ErrorOf("[]"), "expected a JSON object");
  EXPECT_EQ(ErrorOf("{} x"), "expected a JSON object");
  EXPECT_THAT(ErrorOf(R"({"key": []})"), HasSubstr("key: there is no such setting"));
  EXPECT_THAT(ErrorOf(R"({"key": []})"), HasSubstr("did you mean 'keys'"));
  EXPECT_EQ(ErrorOf(R"({"keys": {}})"), "keys: expected a list");
  EXPECT_EQ(ErrorOf(R"({"keys": [1]})"), "keys[0]: expected an object");
  EXPECT_EQ(ErrorOf(R"({"keys": [], "keys": []})"), "keys is given twice");
  EXPECT_THAT(ErrorOf(Key(R"(, "scope": [])")), HasSubstr("keys[0].scope: there is no such"));
  EXPECT_THAT(ErrorOf(Key(R"(, "id": "x")")), HasSubstr("keys[0].id is given twice"));
  EXPECT_THAT(ErrorOf(Key(R"(, "expires": "tomorrow")")), HasSubstr("keys[0].expires: expected"));
  EXPECT_THAT(ErrorOf(Key(R"(, "models": [])")), HasSubstr("keys[0].models: expected a list"));
  EXPECT_THAT(ErrorOf(Key(R"(, "models": [1])")), HasSubstr("keys[0].models: expected a list"));
  EXPECT_THAT(ErrorOf(Key(R"(, "limits": {"weight": 0})")), HasSubstr("keys[0].limits.weight"));
  EXPECT_THAT(ErrorOf(Key(R"(, "limits": {"in_flight": -1})")), HasSubstr("limits.in_flight"));
  EXPECT_THAT(ErrorOf(R"({"keys": [{"id": "a", "sha256": "12", "scopes": ["infer"]}]})"),
              HasSubstr("64 hexadecimal digits"));
}

TEST(Rules, NameTheScopesThatThereAre) {
  const std::string error = ErrorOf(R"({"anonymous": {"scopes": ["infr"]}})");
  EXPECT_THAT(error, HasSubstr("anonymous.scopes: there is no scope 'infr', expected 'infer'"));
  EXPECT_THAT(error, HasSubstr("did you mean 'infer'"));
  EXPECT_THAT(ErrorOf(R"({"anonymous": {"scopes": ["health"]}})"), HasSubstr("no scope 'health'"));
}

TEST(Rules, HaveIdsThatCannotBeTakenForOthers) {
  const auto with_id = [](const std::string& id) {
    return ErrorOf(R"({"keys": [{"id": ")" + id + R"(", "sha256": ")" + kDigest +
                   R"(", "scopes": ["infer"]}]})");
  };
  EXPECT_EQ(with_id("ci-1_a.b@x"), "");
  for (const std::string& id : {std::string("a b"), std::string(129, 'a'), std::string("é"),
                                std::string("a\\n"), std::string("anonymous")}) {
    EXPECT_NE(with_id(id), "") << id;
  }
  const std::string other(64, 'b');
  EXPECT_THAT(ErrorOf(R"({"keys": [{"id": "a", "sha256": ")" + kDigest +
                      R"(", "scopes": ["infer"]}, {"id": "a", "sha256": ")" + other +
                      R"(", "scopes": ["infer"]}]})"),
              HasSubstr("keys[1].id: 'a' is used twice"));
  EXPECT_THAT(ErrorOf(R"({"keys": [{"id": "a", "sha256": ")" + kDigest +
                      R"(", "scopes": ["infer"]}, {"id": "b", "sha256": ")" + kDigest +
                      R"(", "scopes": ["infer"]}]})"),
              HasSubstr("two ids have the same key"));
}

TEST(Rules, OfTokensNeedAnAudienceAndKeysFromASafePlace) {
  const auto with = [](const std::string& keys, const std::string& more) {
    return ErrorOf(R"({"tokens": [{"issuer": "i", "keys": ")" + keys + "\"" + more + "}]}");
  };
  const std::string rest = R"(, "audience": "a", "scopes": {"x": ["infer"]})";
  EXPECT_EQ(with("keys.json", rest), "");
  EXPECT_EQ(with("http://127.0.0.1:1/keys", rest), "");
  EXPECT_THAT(with("http://id.example.com/keys", rest), HasSubstr("https://"));
  EXPECT_THAT(with("http://127.0.0.1.example.com/keys", rest), HasSubstr("https://"));
  EXPECT_THAT(with("http://127.0.0.1:80@id.example.com/keys", rest), HasSubstr("https://"));
  EXPECT_THAT(with("http://localhost@id.example.com/keys", rest), HasSubstr("https://"));
  EXPECT_THAT(with("keys.json", R"(, "scopes": {"x": ["infer"]})"), HasSubstr("audience"));
  EXPECT_THAT(with("keys.json", R"(, "audience": "a")"), HasSubstr("scopes: expected an object"));
  EXPECT_THAT(with("keys.json", rest + R"(, "models": "m", "models_claim": "c")"),
              HasSubstr("either 'models' or 'models_claim'"));
}

TEST(Rules, OfCertificatesNeedOneThingToLookAt) {
  const auto with = [](const std::string& what) {
    return ErrorOf(R"({"certificates": [{"id": "c", "scopes": ["infer"])" + what + "}]}");
  };
  EXPECT_EQ(with(R"(, "name": "DNS:x")"), "");
  EXPECT_THAT(with(""), HasSubstr("either 'subject' or 'name'"));
  EXPECT_THAT(with(R"(, "name": "DNS:x", "subject": "CN=x")"), HasSubstr("either"));
  EXPECT_THAT(with(R"(, "name": "")"), HasSubstr("name: expected a text"));
}

TEST(Rules, SurviveWhateverIsInTheFile) {
  EXPECT_NE(ErrorOf(std::string(1'000'000, '[')), "");
  EXPECT_NE(ErrorOf("{\"keys\":" + std::string(1'000'000, '[')), "");
  EXPECT_NE(ErrorOf("{\"\xff\": 1}"), "");
  EXPECT_NE(ErrorOf(std::string("{}\0", 3)), "");
  const std::string whole = Key(R"(, "limits": {"weight": 2}, "models": ["a"])");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(ErrorOf(whole.substr(0, size)), "") << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char c : {'\0', '"', '{', ']', '\\', '9'}) {
      std::string changed = whole;
      changed[i] = c;
      CallerTable callers;
      static_cast<void>(ParseRules(changed, callers).ok());
    }
  }
}

TEST(Rules, KeepTheCallersThatTheyHad) {
  CallerTable callers;
  const auto first = ParseRules(Key(""), callers);
  const auto again = ParseRules(Key(R"(, "models": ["x"])"), callers);
  const auto limited = ParseRules(Key(R"(, "limits": {"in_flight": 1})"), callers);
  EXPECT_EQ(first->keys[0].grant->caller, again->keys[0].grant->caller);
  EXPECT_NE(first->keys[0].grant->caller, limited->keys[0].grant->caller);
}

TEST(CallerTable, ForgetsWhomNobodyRefersTo) {
  CallerTable callers;
  const core::CallerRef kept = callers.Get("kept", {});
  for (int i = 0; i < 1000; ++i) callers.Get(std::to_string(i), {});
  EXPECT_EQ(callers.Get("kept", {}), kept);
}

TEST(Times, AreReadInTwoForms) {
  EXPECT_EQ(ParseTime("1970-01-02"), 86'400);
  EXPECT_EQ(ParseTime("2027-01-31T12:00:00Z"), 1'801'396'800);
  EXPECT_EQ(ParseTime("2028-02-29"), 1'835'395'200);
  for (const char* const text :
       {"", "2027", "2027-13-01", "2027-02-29", "2027-01-31T24:00:00Z", "2027-01-31T12:00:00",
        "2027-01-31 ", "2027-01-31T12:00:00Zx", "-027-01-31", "2027-01-31T12:00:00+01:00"}) {
    EXPECT_FALSE(ParseTime(text)) << text;
  }
}

}  // namespace
}  // namespace nereid::access
