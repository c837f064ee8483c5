// SPDX-License-Identifier: Apache-2.0
#include "gcs/tokens.h"

#include <utility>

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/log.h"
#include "base/text_encodings.h"
#include "base/trim.h"
#include "object_store/credential_file.h"
#include "object_store/digest.h"
#include "object_store/flat_json.h"
#include "object_store/token_request.h"

namespace nereid::gcs {
namespace {

using http_client::HttpClient;
using http_client::HttpRequest;
using object_store::AskForBearerToken;
using object_store::AskForToken;
using object_store::Expiring;
using object_store::FormRequest;
using object_store::ParseBearerToken;
using object_store::TokenReply;
using object_store::ValueOf;
using Token = base::Result<Expiring<std::string>>;

constexpr const char* kReadScope = "https://www.googleapis.com/auth/devstorage.read_only";
// For tokens that are only exchanged for another one.
constexpr const char* kCloudScope = "https://www.googleapis.com/auth/cloud-platform";
constexpr const char* kWho = "Google's token server";
constexpr std::string_view kBlanks = " \t\r\n";
// How long it is remembered that a machine has no account.
constexpr std::chrono::minutes kNothingStays{10};

std::string Quoted(std::string_view text) {
  std::string quoted;
  base::AppendJsonString(quoted, text);
  return quoted;
}

Token Fetch(HttpClient&, const Anonymous&, const char*) { return Expiring<std::string>{}; }

Token Fetch(HttpClient& client, const ServiceAccount& account, const char* scope) {
  NEREID_ASSIGN_OR_RETURN(const std::string assertion,
                          MakeAssertion(account, scope, std::time(nullptr)));
  return AskForBearerToken(
      client,
      FormRequest(account.token_uri,
                  {{"assertion", assertion},
                   {"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}}),
      fmt::format("{} for '{}'", kWho, account.email));
}

Token Fetch(HttpClient& client, const AuthorizedUser& user, const char*) {
  return AskForBearerToken(client,
                           FormRequest(user.token_uri, {{"client_id", user.client_id},
                                                        {"client_secret", user.client_secret},
                                                        {"grant_type", "refresh_token"},
                                                        {"refresh_token", user.refresh_token}}),
                           fmt::format("{} for a user", kWho));
}

// The token of the other issuer.
base::Result<std::string> SubjectToken(HttpClient& client, const ExternalAccount& account) {
  std::string text;
  if (!account.source_file.empty()) {
    NEREID_ASSIGN_OR_RETURN(text, object_store::ReadKeyFile(account.source_file));
  } else {
    HttpRequest request;
    request.url = account.source_url;
    request.headers = account.source_headers;
    request.avoids_proxy = account.source_url.starts_with("http://169.254.");
    TokenReply reply = AskForToken(client, std::move(request));
    if (!reply.is_success()) {
      return base::UnavailableError("the url of 'credential_source' gives no token: " +
                                    reply.failure);
    }
    text = std::move(reply.body);
  }
  if (!account.source_field.empty()) {
    const auto json = object_store::ParseFlatJson(text);
    text = json.ok() ? ValueOf(*json, account.source_field) : "";
  }
  text = base::Trim(text, kBlanks);
  if (text.empty()) return base::UnavailableError("'credential_source' has no token");
  return text;
}

Token Fetch(HttpClient& client, const ExternalAccount& account, const char* scope) {
  NEREID_ASSIGN_OR_RETURN(const std::string subject, SubjectToken(client, account));
  return AskForBearerToken(
      client,
      FormRequest(account.token_url,
                  {{"audience", account.audience},
                   {"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
                   {"requested_token_type", "urn:ietf:params:oauth:token-type:access_token"},
                   {"scope", scope},
                   {"subject_token", subject},
                   {"subject_token_type", account.token_type}}),
      fmt::format("{} for the audience '{}'", kWho, account.audience));
}

Token Fetch(HttpClient& client, const MachineAccount& machine, const char*) {
  HttpRequest request;
  request.url = fmt::format("http://{}/computeMetadata/v1/instance/service-accounts/default/token",
                            machine.host);
  request.headers["metadata-flavor"] = "Google";
  request.avoids_proxy = true;
  const TokenReply reply = AskForToken(client, std::move(request), object_store::kMetadataRequest);
  const auto flavor = reply.headers.find("metadata-flavor");
  const bool is_google = flavor != reply.headers.end() && flavor->second == "Google";
  if (reply.is_success() && is_google) return ParseBearerToken(reply.body, "the metadata server");
  const std::string reason = reply.is_success() ? "no Metadata-Flavor" : reply.failure;
  const base::Status failure =
      base::UnavailableError("the metadata server gives no token: " + reason);
  if (is_google && reply.status != 404) return failure;
  NEREID_VLOG(1,
              "requests to Google have no token: there are no credentials, and no account of "
              "this machine ({})",
              reason);
  return Expiring<std::string>{.value = {}, .lifetime = kNothingStays, .absence = failure};
}

// Exchanges a token for one of another service account.
Token Impersonate(HttpClient& client, const std::string& url, const std::string& token) {
  HttpRequest request;
  request.method = http_client::Method::kPost;
  request.url = url;
  request.headers = {{"content-type", "application/json"}, {"authorization", "Bearer " + token}};
  request.body = fmt::format(R"({{"scope":["{}"],"lifetime":"3600s"}})", kReadScope);
  const TokenReply reply = AskForToken(client, std::move(request));
  if (!reply.is_success()) {
    return base::UnavailableError("Google gives no token for the service account to impersonate: " +
                                  reply.failure);
  }
  const auto json = object_store::ParseFlatJson(reply.body);
  const std::string other = json.ok() ? ValueOf(*json, "accessToken") : "";
  const auto lifetime = object_store::TimeUntil(json.ok() ? ValueOf(*json, "expireTime") : "");
  if (other.empty() || !object_store::CanBeHeader(other) || !lifetime) {
    return base::UnavailableError(
        "Google replied without a token for the service account to impersonate");
  }
  return Expiring<std::string>{other, std::max(*lifetime, std::chrono::seconds(0))};
}

}  // namespace

base::Result<std::string> MakeAssertion(const ServiceAccount& account, std::string_view scope,
                                        std::time_t now) {
  const std::string key_id = account.key_id.empty() ? "" : ",\"kid\":" + Quoted(account.key_id);
  const std::string head = fmt::format(R"({{"alg":"RS256","typ":"JWT"{}}})", key_id);
  const std::string claims =
      fmt::format(R"({{"iss":{},"scope":{},"aud":{},"iat":{},"exp":{}}})", Quoted(account.email),
                  Quoted(scope), Quoted(account.token_uri), now, now + 3600);
  const std::string text = base::EncodeBase64Url(head) + "." + base::EncodeBase64Url(claims);
  base::Result<std::string> signature = object_store::SignRs256(account.private_key, text);
  if (!signature.ok()) {
    return signature.status().WithPrefix(fmt::format("service account '{}': ", account.email));
  }
  return text + "." + base::EncodeBase64Url(*signature);
}

Token FetchToken(HttpClient& client, const Account& account) {
  const char* const scope = account.impersonation_url.empty() ? kReadScope : kCloudScope;
  Token token =
      std::visit([&](const auto& source) { return Fetch(client, source, scope); }, account.source);
  if (!token.ok() || account.impersonation_url.empty()) return token;
  return Impersonate(client, account.impersonation_url, token->value);
}

}  // namespace nereid::gcs
