// SPDX-License-Identifier: Apache-2.0
#include "access/gate.h"

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access/key_file.h"
#include "access/testing/tokens.h"
#include "base/temporary_folder.h"
#include "http_client/testing/http_stub.h"

namespace nereid::access {
namespace {

using testing::HasSubstr;

class FakeSender final : public Sender {
 public:
  std::string_view Authorization() const override { return authorization; }
  std::string_view ApiKey() const override { return api_key; }
  const net::PeerIdentity* certificate() const override { return identity; }
  std::string Address() const override { return address; }

  std::string authorization;
  std::string api_key;
  const net::PeerIdentity* identity = nullptr;
  std::string address = "10.0.0.7";
};

FakeSender Bearer(const std::string& credential) {
  FakeSender sender;
  sender.authorization = "Bearer " + credential;
  return sender;
}

class GateTest : public testing::Test {
 protected:
  GateTest() : folder_(base::MakeTemporaryFolder("gate").value()) {}
  ~GateTest() override { std::filesystem::remove_all(folder_.path); }

  std::string file() const { return folder_.path + "/keys.json"; }
  // In one step, as an operator should.
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path + "/new") << text;
    std::filesystem::rename(folder_.path + "/new", folder_.path + "/" + name);
  }
  std::string Add(const std::string& id, const std::vector<std::string>& scopes,
                  const std::vector<std::string>& models = {}, const std::string& expires = "") {
    const base::Result<std::string> key = AddKey(
        file(), {.id = id, .scopes = scopes, .models = models, .expires = expires, .created = {}});
    EXPECT_TRUE(key.ok()) << key.status().message();
    return key.ok() ? *key : "";
  }
  void Open() {
    auto gate = Gate::CreateForTest(file());
    ASSERT_TRUE(gate.ok()) << gate.status().message();
    gate_ = std::move(gate).value();
  }
  std::optional<Denial> DenialOf(const FakeSender& sender, Scope scope = Scope::kInfer,
                                 std::string_view model = {}) {
    return gate_->Admit(sender, scope, model).denial;
  }
  std::string Metrics() const {
    observe::MetricsPage page;
    gate_->AddMetrics(page);
    return page.text();
  }

  const base::TemporaryFolder folder_;
  std::unique_ptr<Gate> gate_;
};

TEST_F(GateTest, LetsAKeyDoWhatItsScopesSay) {
  const std::string key = Add("ci", {"infer", "metadata"});
  Open();
  // Twice, because the second time the thread knows the key.
  for (int i = 0; i < 2; ++i) {
    const Admission admission = gate_->Admit(Bearer(key), Scope::kInfer, "m");
    EXPECT_FALSE(admission.denial);
    ASSERT_NE(admission.grant, nullptr);
    EXPECT_EQ(admission.grant->caller->id, "ci");
    const Admission denied = gate_->Admit(Bearer(key), Scope::kModelControl, "m");
    EXPECT_EQ(denied.denial, Denial::kScope);
    EXPECT_THAT(denied.text, HasSubstr("'ci' does not have the scope 'model-control'"));
  }
}

TEST_F(GateTest, TakesAKeyFromEitherHeader) {
  const std::string key = Add("ci", {"infer"});
  Open();
  FakeSender sender;
  sender.api_key = key;
  EXPECT_FALSE(DenialOf(sender));
  sender.authorization = "Basic dXNlcjpwYXNz";
  EXPECT_FALSE(DenialOf(sender));
  for (const std::string& text : {"bearer " + key, "BEARER   " + key + " "}) {
    FakeSender other;
    other.authorization = text;
    EXPECT_FALSE(DenialOf(other)) << text;
  }
}

TEST_F(GateTest, RefusesWhateverIsNoKey) {
  const std::string key = Add("ci", {"infer"});
  Open();
  EXPECT_EQ(DenialOf(FakeSender()), Denial::kMissing);
  FakeSender odd;
  for (const std::string& text : {"Bearer" + key, key, std::string("Bearer "), "Basic " + key}) {
    odd.authorization = text;
    EXPECT_EQ(DenialOf(odd), Denial::kMissing) << text;
  }
  for (const std::string& text :
       {key.substr(1), key + "x", "x" + key, std::string(60'000, 'a'), ToHex(HashOf(key))}) {
    EXPECT_EQ(DenialOf(Bearer(text)), Denial::kInvalid);
  }
}

TEST_F(GateTest, ChecksTheModel) {
  const std::string key = Add("ci", {"infer"}, {"res*"});
  Open();
  EXPECT_FALSE(DenialOf(Bearer(key), Scope::kInfer, "resnet"));
  EXPECT_FALSE(DenialOf(Bearer(key), Scope::kInfer, ""));
  const Admission denied = gate_->Admit(Bearer(key), Scope::kInfer, "bert");
  EXPECT_EQ(denied.denial, Denial::kModel);
  EXPECT_EQ(denied.text, "'ci' may not use the model 'bert'");
}

TEST_F(GateTest, LeavesHealthOpenUnlessToldOtherwise) {
  Write("keys.json", "{}");
  Open();
  EXPECT_FALSE(DenialOf(FakeSender(), Scope::kHealth));
  EXPECT_FALSE(DenialOf(Bearer("wrong"), Scope::kHealth));
  Write("keys.json", R"({"protect_health": true})");
  const std::string key = Add("probe", {"metrics"});
  gate_->LookForTest();
  EXPECT_EQ(DenialOf(FakeSender(), Scope::kHealth), Denial::kMissing);
  EXPECT_EQ(DenialOf(Bearer("wrong"), Scope::kHealth), Denial::kInvalid);
  EXPECT_FALSE(DenialOf(Bearer(key), Scope::kHealth));
}

TEST_F(GateTest, GivesEverybodyWhatTheFileGivesToAnonymous) {
  Write("keys.json", R"({"anonymous": {"scopes": ["infer"], "models": ["open"]}})");
  Open();
  const Admission admission = gate_->Admit(FakeSender(), Scope::kInfer, "open");
  EXPECT_FALSE(admission.denial);
  EXPECT_EQ(admission.grant->caller->id, "anonymous");
  EXPECT_EQ(DenialOf(FakeSender(), Scope::kInfer, "closed"), Denial::kModel);
  EXPECT_EQ(DenialOf(FakeSender(), Scope::kMetrics), Denial::kMissing);
  // Wrong credentials are not none.
  EXPECT_EQ(DenialOf(Bearer("wrong"), Scope::kInfer, "open"), Denial::kInvalid);
}

TEST_F(GateTest, RefusesAKeyThatHasExpired) {
  const std::string old = Add("old", {"infer"}, {}, "2020-01-01");
  const std::string fresh = Add("new", {"infer"}, {}, "2199-01-01");
  Open();
  EXPECT_EQ(DenialOf(Bearer(old)), Denial::kExpired);
  EXPECT_FALSE(DenialOf(Bearer(fresh)));
}

TEST_F(GateTest, ReadsTheFileAgainWhenItChanges) {
  const std::string key = Add("ci", {"infer"});
  Open();
  const uint64_t generation = gate_->generation();
  const Admission before = gate_->Admit(Bearer(key), Scope::kInfer, "m");
  ASSERT_FALSE(before.denial);
  EXPECT_TRUE(gate_->IsCurrent(*before.grant, generation));
  ASSERT_TRUE(RevokeKey(file(), "ci").ok());
  const std::string other = Add("other", {"infer"});
  gate_->LookForTest();
  EXPECT_EQ(DenialOf(Bearer(key)), Denial::kInvalid);
  EXPECT_FALSE(DenialOf(Bearer(other)));
  EXPECT_FALSE(gate_->IsCurrent(*before.grant, generation));
}

TEST_F(GateTest, KeepsTheOldRulesWhenTheNewFileIsBroken) {
  const std::string key = Add("ci", {"infer"});
  Open();
  EXPECT_THAT(Metrics(), HasSubstr("nereid_access_file_good 1"));
  Write("keys.json", "{\"keys\": [");
  gate_->LookForTest();
  EXPECT_FALSE(DenialOf(Bearer(key)));
  EXPECT_THAT(Metrics(), HasSubstr("nereid_access_file_good 0"));
  EXPECT_THAT(Metrics(), HasSubstr("nereid_access_reloads_total{result=\"failure\"} 1"));
  std::filesystem::remove(file());
  gate_->LookForTest();
  EXPECT_FALSE(DenialOf(Bearer(key)));
  Write("keys.json", "{}");
  gate_->LookForTest();
  EXPECT_EQ(DenialOf(Bearer(key)), Denial::kInvalid);
  EXPECT_THAT(Metrics(), HasSubstr("nereid_access_file_good 1"));
}

TEST_F(GateTest, IsNotMadeFromABrokenFile) {
  EXPECT_FALSE(Gate::Create(file()).ok());
  Write("keys.json", R"({"keys": 1})");
  const auto gate = Gate::Create(file());
  ASSERT_FALSE(gate.ok());
  EXPECT_THAT(std::string(gate.status().message()), HasSubstr("keys.json': keys: expected a list"));
  EXPECT_FALSE(Gate::Create(folder_.path).ok());
}

TEST_F(GateTest, CutsShortWhoTriesOutCredentials) {
  const std::string key = Add("ci", {"infer"});
  Open();
  for (uint32_t i = 0; i < FailureLimits::kMaxFailures; ++i) {
    EXPECT_EQ(DenialOf(Bearer(fmt::format("guess{}", i))), Denial::kInvalid);
  }
  const Admission blocked = gate_->Admit(Bearer("guess"), Scope::kInfer, {});
  EXPECT_EQ(blocked.denial, Denial::kTooMany);
  EXPECT_GT(blocked.retry_after_s, 0u);
  EXPECT_EQ(DenialOf(Bearer("a.b.c")), Denial::kTooMany);
  // A neighbour with a key goes on, from the same address and from others.
  EXPECT_FALSE(DenialOf(Bearer(key)));
  FakeSender elsewhere = Bearer("guess");
  elsewhere.address = "10.0.0.8";
  EXPECT_EQ(DenialOf(elsewhere), Denial::kInvalid);
  EXPECT_THAT(Metrics(), HasSubstr("nereid_access_denied_total{reason=\"too-many-failures\"} 2"));
}

TEST_F(GateTest, DoesNotCountRequestsWithoutCredentialsAsAttempts) {
  Write("keys.json", "{}");
  Open();
  for (uint32_t i = 0; i < 2 * FailureLimits::kMaxFailures; ++i) {
    EXPECT_EQ(DenialOf(FakeSender()), Denial::kMissing);
  }
}

TEST_F(GateTest, KnowsClientsByTheirCertificates) {
  Write("keys.json", R"({"certificates": [
      {"id": "billing", "name": "DNS:billing.*", "scopes": ["infer"]},
      {"id": "ops", "subject": "CN=ops,O=Example", "scopes": ["admin"]}]})");
  const std::string key = Add("ci", {"metrics"});
  Open();
  const net::PeerIdentity billing{"CN=x", {"DNS:y", "DNS:billing.example.com"}, "f1"};
  const net::PeerIdentity ops{"CN=ops,O=Example", {}, "f2"};
  const net::PeerIdentity nobody{"CN=ops", {"DNS:xbilling.example.com"}, "f3"};
  FakeSender sender;
  sender.identity = &billing;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(gate_->Admit(sender, Scope::kInfer, {}).grant->caller->id, "billing");
  }
  EXPECT_EQ(DenialOf(sender, Scope::kMetrics), Denial::kScope);
  sender.identity = &ops;
  EXPECT_FALSE(DenialOf(sender, Scope::kModelControl));
  sender.identity = &nobody;
  EXPECT_EQ(DenialOf(sender), Denial::kMissing);
  // A client with a certificate and a key is identified by the key.
  sender.identity = &ops;
  sender.api_key = key;
  EXPECT_EQ(DenialOf(sender, Scope::kModelControl), Denial::kScope);
}

TEST_F(GateTest, DoesNotTakeATextForAKnownCertificate) {
  Write("keys.json",
        R"({"certificates": [{"id": "ops", "subject": "CN=ops", "scopes": ["admin"]}]})");
  Open();
  const net::PeerIdentity ops{"CN=ops", {}, "fingerprint"};
  FakeSender sender;
  sender.identity = &ops;
  EXPECT_FALSE(DenialOf(sender));
  EXPECT_EQ(DenialOf(Bearer("fingerprint")), Denial::kInvalid);
}

std::string TokenRules(const std::string& keys) {
  return R"({"tokens": [{"issuer": "i", "audience": "us", "keys": ")" + keys +
         R"(", "scopes": {"user": ["infer"]}}]})";
}

std::string FreshPayload() {
  return fmt::format(R"({{"iss":"i","aud":"us","sub":"ann","scope":"user","exp":{}}})",
                     std::time(nullptr) + 600);
}

TEST_F(GateTest, KnowsTokensByTheKeysInAFile) {
  const TestIssuer first(Algorithm::kEdDsa, "k1");
  const TestIssuer second(Algorithm::kEdDsa, "k2");
  Write("jwks.json", first.KeySet());
  Write("keys.json", TokenRules(folder_.path + "/jwks.json"));
  Open();
  const Admission admission = gate_->Admit(Bearer(first.Token(FreshPayload())), Scope::kInfer, "m");
  ASSERT_FALSE(admission.denial);
  EXPECT_EQ(admission.grant->caller->id, "i ann");
  EXPECT_EQ(DenialOf(Bearer(first.Token(FreshPayload())), Scope::kMetadata), Denial::kScope);
  EXPECT_EQ(DenialOf(Bearer(second.Token(FreshPayload()))), Denial::kInvalid);
  // The issuer changes its key: tokens of the old one end.
  Write("jwks.json", second.KeySet());
  gate_->LookForTest();
  EXPECT_FALSE(DenialOf(Bearer(second.Token(FreshPayload()))));
  EXPECT_EQ(DenialOf(Bearer(first.Token(FreshPayload()))), Denial::kInvalid);
  // A broken set changes nothing.
  Write("jwks.json", "{}");
  gate_->LookForTest();
  EXPECT_FALSE(DenialOf(Bearer(second.Token(FreshPayload()))));
}

TEST_F(GateTest, SaysThatTokensCannotBeCheckedYet) {
  Write("keys.json", TokenRules(folder_.path + "/jwks.json"));
  Open();
  const TestIssuer issuer(Algorithm::kEs256);
  const Admission admission = gate_->Admit(Bearer(issuer.Token(FreshPayload())), Scope::kInfer, {});
  EXPECT_EQ(admission.denial, Denial::kNotReady);
  EXPECT_GT(admission.retry_after_s, 0u);
}

TEST_F(GateTest, AsksAUrlForKeys) {
  const TestIssuer issuer(Algorithm::kEs256);
  const http_client::HttpStub stub([&issuer](const http_client::StubRequest&) {
    return http_client::StubReply{.body = issuer.KeySet()};
  });
  Write("keys.json", TokenRules(stub.endpoint() + "/keys"));
  Open();
  const FakeSender sender = Bearer(issuer.Token(FreshPayload()));
  EXPECT_EQ(DenialOf(sender), Denial::kNotReady);
  gate_->LookForTest();
  EXPECT_FALSE(DenialOf(sender));
}

}  // namespace
}  // namespace nereid::access
