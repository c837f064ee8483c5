// SPDX-License-Identifier: Apache-2.0
#include "gcs/account.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "object_store/credential_file.h"
#include "object_store/digest.h"
#include "object_store/flat_json.h"
#include "repository/local_store.h"

namespace nereid::gcs {
namespace {

using object_store::Environment;
using object_store::FirstOf;
using object_store::FlatJson;
using object_store::ValueOf;

constexpr const char* kTokenUri = "https://oauth2.googleapis.com/token";
constexpr const char* kStsUri = "https://sts.googleapis.com/v1/token";
// By its address, which needs no name server; Google's own tools look for it there, too.
constexpr const char* kMetadataHost = "169.254.169.254";

base::Status Lacks(const std::string& type, const char* field) {
  return base::InvalidArgumentError(
      fmt::format("credentials of the type '{}' lack '{}'", type, field));
}

std::string OrElse(std::string value, const char* other) {
  if (value.empty()) value = other;
  return value;
}

base::Result<TokenSource> ParseExternalAccount(const FlatJson& json) {
  ExternalAccount account{.audience = ValueOf(json, "audience"),
                          .token_type = ValueOf(json, "subject_token_type"),
                          .token_url = OrElse(ValueOf(json, "token_url"), kStsUri),
                          .source_file = ValueOf(json, "credential_source.file"),
                          .source_url = ValueOf(json, "credential_source.url"),
                          .source_headers = {},
                          .source_field = ""};
  constexpr std::string_view kHeaders = "credential_source.headers.";
  for (const auto& [path, value] : json) {
    if (path.starts_with(kHeaders)) account.source_headers[path.substr(kHeaders.size())] = value;
  }
  if (ValueOf(json, "credential_source.format.type") == "json") {
    account.source_field = ValueOf(json, "credential_source.format.subject_token_field_name");
    if (account.source_field.empty()) return Lacks("external_account", "subject_token_field_name");
  }
  if (json.contains("credential_source.environment_id") ||
      (account.source_file.empty() && account.source_url.empty())) {
    return base::UnsupportedError(
        "credentials of the type 'external_account' are supported where 'credential_source' names "
        "a "
        "file or a url with the token, not a program and not Amazon's keys");
  }
  if (account.audience.empty()) return Lacks("external_account", "audience");
  if (account.token_type.empty()) return Lacks("external_account", "subject_token_type");
  return TokenSource(std::move(account));
}

// Reads the source whose fields begin with `prefix`.
base::Result<TokenSource> ParseSource(const FlatJson& json, const std::string& prefix) {
  const auto field = [&](const char* name) { return ValueOf(json, prefix + name); };
  const std::string type = field("type");
  if (type == "service_account") {
    ServiceAccount account{field("client_email"), field("private_key_id"), field("private_key"),
                           OrElse(field("token_uri"), kTokenUri)};
    if (account.email.empty()) return Lacks(type, "client_email");
    if (account.private_key.empty()) return Lacks(type, "private_key");
    return TokenSource(std::move(account));
  }
  if (type == "authorized_user") {
    AuthorizedUser user{field("client_id"), field("client_secret"), field("refresh_token"),
                        OrElse(field("token_uri"), kTokenUri)};
    if (user.client_id.empty()) return Lacks(type, "client_id");
    if (user.client_secret.empty()) return Lacks(type, "client_secret");
    if (user.refresh_token.empty()) return Lacks(type, "refresh_token");
    return TokenSource(std::move(user));
  }
  if (type == "external_account" && prefix.empty()) return ParseExternalAccount(json);
  return base::UnsupportedError(
      fmt::format("credentials have the type '{}'; supported are service_account, authorized_user, "
                  "external_account and impersonated_service_account",
                  type.substr(0, 64)));
}

base::Result<Account> ReadAccount(const std::string& file) {
  NEREID_ASSIGN_OR_RETURN(const std::string text, object_store::ReadKeyFile(file));
  base::Result<Account> account = ParseAccount(text);
  if (!account.ok()) {
    return account.status().WithPrefix(fmt::format("the Google credentials in {}: ", file));
  }
  account->identity = fmt::format("{} {}", file, object_store::Sha256Hex(text));
  return account;
}

// The file that `gcloud auth application-default login` writes.
std::string WellKnownFile(const Environment& environment) {
  std::string folder = FirstOf(environment, {"CLOUDSDK_CONFIG"});
  if (folder.empty()) folder = FirstOf(environment, {"HOME"}) + "/.config/gcloud";
  return folder + "/application_default_credentials.json";
}

}  // namespace

base::Result<Account> ParseAccount(std::string_view text) {
  NEREID_ASSIGN_OR_RETURN(const FlatJson json, object_store::ParseFlatJson(text));
  Account account;
  account.impersonation_url = ValueOf(json, "service_account_impersonation_url");
  if (ValueOf(json, "type") == "impersonated_service_account") {
    if (account.impersonation_url.empty()) {
      return Lacks("impersonated_service_account", "service_account_impersonation_url");
    }
    NEREID_ASSIGN_OR_RETURN(account.source, ParseSource(json, "source_credentials."));
  } else {
    NEREID_ASSIGN_OR_RETURN(account.source, ParseSource(json, ""));
  }
  return account;
}

base::Result<Account> FindAccount(std::string_view path, const Environment& environment,
                                  bool is_emulator) {
  NEREID_ASSIGN_OR_RETURN(const auto entry,
                          object_store::FindCredentialEntry(environment, "gs", path));
  const std::string file =
      entry ? entry->text : FirstOf(environment, {"GOOGLE_APPLICATION_CREDENTIALS"});
  if (!file.empty()) return ReadAccount(file);
  if (is_emulator) return Account{Anonymous{}, "", "anonymous"};
  const std::string well_known = WellKnownFile(environment);
  if (repository::LocalStore().Exists(well_known)) return ReadAccount(well_known);
  const std::string host =
      OrElse(FirstOf(environment, {"GCE_METADATA_HOST", "GCE_METADATA_ROOT"}), kMetadataHost);
  return Account{MachineAccount{host}, "", "machine " + host};
}

}  // namespace nereid::gcs
