// SPDX-License-Identifier: Apache-2.0
#include "azure/account.h"

#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/trim.h"
#include "object_store/credential_file.h"
#include "object_store/digest.h"
#include "object_store/endpoint.h"

namespace nereid::azure {
namespace {

using object_store::Environment;
using object_store::FirstOf;
using Fields = std::map<std::string, std::string>;

constexpr const char* kAuthority = "https://login.microsoftonline.com";
constexpr const char* kMachine = "http://169.254.169.254";

std::string WithoutSlash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

// Reads "Name=value;Name=value".
Fields ParseConnectionString(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t equals = part.find('=');
    if (equals == part.npos) continue;
    fields.emplace(base::Trim(part.substr(0, equals), " "), part.substr(equals + 1));
  }
  return fields;
}

// What users say about an account: the fields of an entry in Triton's file, which are also the
// names of the values here.
Fields FromVariables(const Environment& environment) {
  const Fields connection =
      ParseConnectionString(FirstOf(environment, {"AZURE_STORAGE_CONNECTION_STRING"}));
  Fields fields;
  const auto add = [&](const char* field, const char* variable, const char* part) {
    std::string value = FirstOf(environment, {variable});
    const auto found = connection.find(part);
    if (value.empty() && found != connection.end()) value = found->second;
    if (!value.empty()) fields[field] = std::move(value);
  };
  add("account_str", "AZURE_STORAGE_ACCOUNT", "AccountName");
  add("account_key", "AZURE_STORAGE_KEY", "AccountKey");
  add("sas_token", "AZURE_STORAGE_SAS_TOKEN", "SharedAccessSignature");
  add("endpoint", "AZURE_STORAGE_SERVICE_ENDPOINT", "BlobEndpoint");
  add("auth_type", "AZURE_STORAGE_AUTH_TYPE", "");
  add("client_id", "AZURE_STORAGE_CLIENT_ID", "");
  add("suffix", "", "EndpointSuffix");
  return fields;
}

std::string Field(const Fields& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

std::optional<Access> FindApplication(const Environment& environment) {
  std::string tenant = FirstOf(environment, {"AZURE_TENANT_ID"});
  std::string client = FirstOf(environment, {"AZURE_CLIENT_ID"});
  std::string authority = WithoutSlash(FirstOf(environment, {"AZURE_AUTHORITY_HOST"}));
  if (tenant.empty() || client.empty()) return std::nullopt;
  if (authority.empty()) authority = kAuthority;
  if (authority.find("://") == authority.npos) authority = "https://" + authority;
  std::string secret = FirstOf(environment, {"AZURE_CLIENT_SECRET"});
  if (!secret.empty()) {
    return ClientSecret{std::move(tenant), std::move(client), std::move(secret),
                        std::move(authority)};
  }
  std::string file = FirstOf(environment, {"AZURE_FEDERATED_TOKEN_FILE"});
  if (file.empty()) return std::nullopt;
  return WorkloadIdentity{std::move(tenant), std::move(client), std::move(file),
                          std::move(authority)};
}

Access FindManagedIdentity(const Environment& environment, std::string client_id) {
  std::string endpoint = FirstOf(environment, {"IDENTITY_ENDPOINT"});
  std::string header = FirstOf(environment, {"IDENTITY_HEADER"});
  if (!endpoint.empty() && !header.empty()) {
    return ManagedIdentity{std::move(endpoint), std::move(header), std::move(client_id)};
  }
  endpoint = WithoutSlash(FirstOf(environment, {"AZURE_POD_IDENTITY_AUTHORITY_HOST"}));
  if (endpoint.empty()) endpoint = kMachine;
  return ManagedIdentity{endpoint + "/metadata/identity/oauth2/token", "", std::move(client_id)};
}

base::Result<Access> ParseKey(const std::string& text) {
  std::optional<std::string> key = object_store::DecodeBase64(base::Trim(text, " \r\n"));
  if (!key || key->empty()) {
    return base::InvalidArgumentError("the key of the storage account is not base64");
  }
  return Access(SharedKey{*std::move(key)});
}

base::Result<Access> FindAccess(const Fields& fields, const Environment& environment) {
  const std::string type = Field(fields, "auth_type");
  if (type == "managed_identity") {
    return FindManagedIdentity(environment, Field(fields, "client_id"));
  }
  if (type == "default") {
    std::optional<Access> application = FindApplication(environment);
    if (application) return *std::move(application);
    std::string client_id = Field(fields, "client_id");
    if (client_id.empty()) client_id = FirstOf(environment, {"AZURE_CLIENT_ID"});
    return FindManagedIdentity(environment, std::move(client_id));
  }
  if (!type.empty() && type != "key") {
    return base::InvalidArgumentError(
        fmt::format("unknown Azure authentication type '{}'; there are: key, managed_identity, "
                    "default",
                    type));
  }
  if (const std::string key = Field(fields, "account_key"); !key.empty()) return ParseKey(key);
  if (std::string sas = Field(fields, "sas_token"); !sas.empty()) {
    if (sas.front() == '?') sas.erase(0, 1);
    const bool is_clean = sas.find_first_of(" \t\r\n#") == sas.npos;
    if (!is_clean) return base::InvalidArgumentError("the shared access signature has blanks");
    return Access(SharedAccessSignature{std::move(sas)});
  }
  // Somebody put an application's identity there for this process.
  if (type.empty()) {
    std::optional<Access> application = FindApplication(environment);
    if (application) return *std::move(application);
  }
  return Access(Anonymous{});
}

// Names the access; two that differ have different names, which contain no secret.
std::string NameOf(const Access& access) {
  std::string text;
  if (const auto* const key = std::get_if<SharedKey>(&access)) {
    text = "key " + key->key;
  } else if (const auto* const sas = std::get_if<SharedAccessSignature>(&access)) {
    text = "signature " + sas->query;
  } else if (const auto* const secret = std::get_if<ClientSecret>(&access)) {
    text = fmt::format("secret {} {} {} {}", secret->tenant, secret->client_id, secret->secret,
                       secret->authority);
  } else if (const auto* const workload = std::get_if<WorkloadIdentity>(&access)) {
    text = fmt::format("workload {} {} {} {}", workload->tenant, workload->client_id,
                       workload->token_file, workload->authority);
  } else if (const auto* const managed = std::get_if<ManagedIdentity>(&access)) {
    text = fmt::format("managed {} {} {}", managed->endpoint, managed->header, managed->client_id);
  }
  return object_store::Sha256Hex(text);
}

// A token in a request without encryption would be anybody's on the way.
base::Status CheckEndpoint(const Account& account) {
  const bool has_token = HasTokens(account.access);
  if (!has_token || object_store::IsConfidential(account.endpoint)) return base::OkStatus();
  return base::InvalidArgumentError(
      fmt::format("tokens are not sent without encryption; the endpoint is {}", account.endpoint));
}

}  // namespace

base::Result<Account> FindAccount(std::string_view path, const Location& location,
                                  const Environment& environment) {
  NEREID_ASSIGN_OR_RETURN(const auto entry,
                          object_store::FindCredentialEntry(environment, "as", path));
  const Fields fields = entry ? entry->fields : FromVariables(environment);
  Account account;
  // As in Triton, an account that is named there wins over that of the path.
  account.name = Field(fields, "account_str");
  if (account.name.empty()) account.name = AccountOf(location.host);
  account.endpoint = WithoutSlash(Field(fields, "endpoint"));
  if (account.endpoint.empty()) {
    const std::string suffix = Field(fields, "suffix");
    const bool is_host = location.host.find('.') != location.host.npos;
    account.endpoint = is_host && AccountOf(location.host) == account.name
                           ? "https://" + location.host
                           : fmt::format("https://{}.blob.{}", account.name,
                                         suffix.empty() ? "core.windows.net" : suffix);
  }
  NEREID_ASSIGN_OR_RETURN(account.access, FindAccess(fields, environment));
  NEREID_RETURN_IF_ERROR(CheckEndpoint(account));
  account.identity =
      fmt::format("{} {} {}", account.name, account.endpoint, NameOf(account.access));
  return account;
}

}  // namespace nereid::azure
