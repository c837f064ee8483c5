// SPDX-License-Identifier: Apache-2.0
#include "gcs/tokens.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include <fmt/format.h>

#include "http_client/testing/http_stub.h"
#include "http_client/url.h"
#include "object_store/digest.h"
#include "object_store/testing/fake_environment.h"

namespace nereid::gcs {
namespace {

using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;
using testing::HasSubstr;
using testing::Not;

// Deleter for OpenSSL's objects.
struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// A pair of keys, made for each test.
class KeyPair {
 public:
  KeyPair() : key_(EVP_RSA_gen(2048)) {}

  std::string PrivateKey() const {
    const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &text);
    return {text, static_cast<size_t>(size)};
  }
  // Whether the signature of "head.claims.signature" is that of this key.
  bool HasSigned(const std::string& assertion) const {
    const size_t end = assertion.rfind('.');
    const std::string signature = Decode(assertion.substr(end + 1));
    const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
    EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get());
    return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                            signature.size(),
                            reinterpret_cast<const unsigned char*>(assertion.data()), end) == 1;
  }
  // Decodes the base64 of tokens.
  static std::string Decode(std::string text) {
    for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
    while (text.size() % 4 != 0) text += '=';
    return object_store::DecodeBase64(text).value_or("not base64");
  }

 private:
  const std::unique_ptr<EVP_PKEY, Free> key_;
};

TEST(AnAssertion, HasItsClaimsAndTheSignatureOfTheKey) {
  const KeyPair keys;
  const ServiceAccount account{"me@project", "id", keys.PrivateKey(), "https://token"};
  const auto assertion = MakeAssertion(account, "https://scope", 1000);
  ASSERT_TRUE(assertion.ok()) << assertion.status().ToString();
  EXPECT_TRUE(keys.HasSigned(*assertion));
  const size_t dot = assertion->find('.');
  EXPECT_EQ(KeyPair::Decode(assertion->substr(0, dot)),
            R"({"alg":"RS256","typ":"JWT","kid":"id"})");
  EXPECT_EQ(KeyPair::Decode(assertion->substr(dot + 1, assertion->rfind('.') - dot - 1)),
            R"({"iss":"me@project","scope":"https://scope","aud":"https://token",)"
            R"("iat":1000,"exp":4600})");
}

TEST(AnAssertion, NeedsAPrivateKey) {
  const ServiceAccount account{"me@project", "", "my secret", "https://token"};
  const auto assertion = MakeAssertion(account, "s", 0);
  EXPECT_THAT(assertion.status().message(),
              HasSubstr("service account 'me@project': the private key is not an RSA key"));
  EXPECT_THAT(assertion.status().message(), Not(HasSubstr("my secret")));
}

class AToken : public testing::Test {
 protected:
  std::vector<StubRequest> requests_;
  std::map<std::string, StubReply> replies_;
  HttpStub server_{[this](const StubRequest& request) {
    requests_.push_back(request);
    const auto found = replies_.find(request.target);
    return found == replies_.end() ? StubReply{404} : found->second;
  }};
  http_client::HttpClient client_;
};

constexpr const char* kReply = R"({"access_token": "T", "expires_in": 3599})";

TEST_F(AToken, IsGivenForASignedAssertion) {
  const KeyPair keys;
  replies_["/token"] = {200, {}, kReply};
  const ServiceAccount account{"me@project", "", keys.PrivateKey(), server_.endpoint() + "/token"};
  const auto token = FetchToken(client_, {account, "", ""});
  ASSERT_TRUE(token.ok()) << token.status().ToString();
  EXPECT_EQ(token->value, "T");
  EXPECT_EQ(token->lifetime, std::chrono::seconds(3599));
  const std::string body = http_client::PercentDecode(requests_.at(0).body);
  const size_t end = body.find("&grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer");
  ASSERT_NE(end, body.npos) << body;
  EXPECT_TRUE(keys.HasSigned(body.substr(10, end - 10)));  // after "assertion="
}

TEST_F(AToken, IsGivenForARefreshToken) {
  replies_["/token"] = {200, {}, kReply};
  const AuthorizedUser user{"c", "s", "r/1", server_.endpoint() + "/token"};
  ASSERT_TRUE(FetchToken(client_, {user, "", ""}).ok());
  EXPECT_EQ(requests_.at(0).body,
            "client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=r%2F1");
  replies_["/token"] = {400, {}, R"({"error": "invalid_grant", "error_description": "Expired."})"};
  EXPECT_EQ(FetchToken(client_, {user, "", ""}).status().message(),
            "Google's token server for a user gives no token: HTTP status 400: invalid_grant: "
            "Expired.");
}

TEST_F(AToken, IsGivenForThatOfAnotherIssuerAndExchangedForAnotherAccount) {
  const object_store::FakeEnvironment files;
  replies_["/sts"] = {200, {}, kReply};
  replies_["/generate"] = {
      200, {}, R"({"accessToken": "I", "expireTime": "2200-01-01T00:00:00Z"})"};
  ExternalAccount account{"aud",
                          "urn:jwt",
                          server_.endpoint() + "/sts",
                          files.Write("token.json", R"({"id": {"token": "subject"}})"),
                          "",
                          {},
                          "id.token"};
  const auto token = FetchToken(client_, {account, server_.endpoint() + "/generate", ""});
  ASSERT_TRUE(token.ok()) << token.status().ToString();
  EXPECT_EQ(token->value, "I");
  EXPECT_THAT(requests_.at(0).body, HasSubstr("&subject_token=subject&"));
  EXPECT_THAT(requests_.at(0).body, HasSubstr("auth%2Fcloud-platform"));
  EXPECT_EQ(requests_.at(1).headers.at("authorization"), "Bearer T");
  EXPECT_THAT(requests_.at(1).body, HasSubstr("devstorage.read_only"));
  account.source_field = "missing";
  EXPECT_EQ(FetchToken(client_, {account, "", ""}).status().message(),
            "'credential_source' has no token");
}

TEST_F(AToken, IsGivenByTheMachine) {
  const std::string target = "/computeMetadata/v1/instance/service-accounts/default/token";
  const MachineAccount machine{server_.endpoint().substr(7)};
  replies_[target] = {200, {{"Metadata-Flavor", "Google"}}, kReply};
  EXPECT_EQ(FetchToken(client_, {machine, "", ""})->value, "T");
  EXPECT_EQ(requests_.at(0).headers.at("metadata-flavor"), "Google");
  // Another server is at this address in other clouds.
  replies_[target] = {200, {}, kReply};
  EXPECT_EQ(FetchToken(client_, {machine, "", ""})->value, "");
  replies_[target] = {404, {{"Metadata-Flavor", "Google"}}, "no account"};
  EXPECT_EQ(FetchToken(client_, {machine, "", ""})->value, "");
}

TEST_F(AToken, OfTheMachineStaysWhileItsMetadataServerDoesNotRespond) {
  const std::string target = "/computeMetadata/v1/instance/service-accounts/default/token";
  const Account account{MachineAccount{server_.endpoint().substr(7)}, "", ""};
  replies_[target] = {200, {{"Metadata-Flavor", "Google"}}, kReply};
  base::TimePoint now = std::chrono::steady_clock::now();
  object_store::Renewed<std::string> token([&] { return FetchToken(client_, account); },
                                           [&now] { return now; });
  ASSERT_EQ(*token.Get(), "T");
  replies_.erase(target);
  now += std::chrono::minutes(57);
  EXPECT_EQ(*token.Get(), "T");
  now += std::chrono::minutes(4);
  EXPECT_EQ(token.Get().status().message(), "the metadata server gives no token: HTTP status 404");
}

TEST_F(AToken, IsEmptyWithoutAnAccount) {
  EXPECT_EQ(FetchToken(client_, {Anonymous{}, "", ""})->value, "");
  EXPECT_TRUE(requests_.empty());
}

}  // namespace
}  // namespace nereid::gcs
