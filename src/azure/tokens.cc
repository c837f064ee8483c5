// SPDX-License-Identifier: Apache-2.0
#include "azure/tokens.h"

#include <fmt/format.h>

#include "base/trim.h"
#include "http_client/url.h"
#include "object_store/credential_file.h"
#include "object_store/token_request.h"

namespace nereid::azure {
namespace {

using http_client::HttpClient;
using http_client::HttpRequest;
using http_client::PercentEncode;
using object_store::AskForBearerToken;
using object_store::Expiring;
using object_store::FormRequest;
using object_store::TokenRequestOptions;
using Token = base::Result<Expiring<std::string>>;

constexpr const char* kResource = "https://storage.azure.com/";
constexpr const char* kScope = "https://storage.azure.com/.default";
// The token service of a machine responds at once or not at all.
constexpr TokenRequestOptions kMachineRequest{.timeout = std::chrono::milliseconds(3000),
                                              .retry = {.attempts = 3}};

std::string TokenUrl(const std::string& authority, const std::string& tenant) {
  return fmt::format("{}/{}/oauth2/v2.0/token", authority, PercentEncode(tenant, false));
}

Token Fetch(HttpClient& client, const ClientSecret& application) {
  return AskForBearerToken(client,
                           FormRequest(TokenUrl(application.authority, application.tenant),
                                       {{"client_id", application.client_id},
                                        {"client_secret", application.secret},
                                        {"grant_type", "client_credentials"},
                                        {"scope", kScope}}),
                           fmt::format("Microsoft Entra, at {} for the application '{}',",
                                       application.authority, application.client_id));
}

Token Fetch(HttpClient& client, const WorkloadIdentity& workload) {
  NEREID_ASSIGN_OR_RETURN(const std::string token, object_store::ReadKeyFile(workload.token_file));
  return AskForBearerToken(
      client,
      FormRequest(
          TokenUrl(workload.authority, workload.tenant),
          {{"client_assertion", std::string(base::Trim(token, " \t\r\n"))},
           {"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
           {"client_id", workload.client_id},
           {"grant_type", "client_credentials"},
           {"scope", kScope}}),
      fmt::format("Microsoft Entra, at {} for the workload identity '{}',", workload.authority,
                  workload.client_id));
}

Token Fetch(HttpClient& client, const ManagedIdentity& identity) {
  const bool is_machine = identity.header.empty();
  HttpRequest request;
  request.url =
      fmt::format("{}?api-version={}&resource={}", identity.endpoint,
                  is_machine ? "2018-02-01" : "2019-08-01", PercentEncode(kResource, false));
  if (!identity.client_id.empty()) {
    request.url += "&client_id=" + PercentEncode(identity.client_id, false);
  }
  if (is_machine) {
    request.headers["metadata"] = "true";
  } else {
    request.headers["x-identity-header"] = identity.header;
  }
  request.avoids_proxy = true;
  return AskForBearerToken(
      client, std::move(request),
      fmt::format("the token service for the managed identity of this machine, at {},",
                  identity.endpoint),
      kMachineRequest);
}

template <typename Other>
Token Fetch(HttpClient&, const Other&) {
  return Expiring<std::string>{};
}

}  // namespace

Token FetchToken(HttpClient& client, const Access& access) {
  return std::visit([&client](const auto& kind) { return Fetch(client, kind); }, access);
}

}  // namespace nereid::azure
