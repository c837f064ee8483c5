// SPDX-License-Identifier: Apache-2.0
// Finds the account for a bucket in the places where Triton and Google's tools look for it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "object_store/environment.h"

namespace nereid::gcs {

// A key of a service account: tokens are requested with a signature.
struct ServiceAccount {
  std::string email;
  std::string key_id;
  std::string private_key;  // PEM
  std::string token_uri;
};

// What a user left behind after signing in.
struct AuthorizedUser {
  std::string client_id;
  std::string client_secret;
  std::string refresh_token;
  std::string token_uri;
};

// A token of another issuer (Kubernetes, another cloud), which Google exchanges for its own.
struct ExternalAccount {
  std::string audience;
  std::string token_type;
  std::string token_url;
  std::string source_file;  // has the other issuer's token; if empty, `source_url` gives it
  std::string source_url;
  std::map<std::string, std::string> source_headers;
  std::string source_field;  // of a JSON document that contains the token; empty: it is plain text
};

// The machine's metadata server: the account that is attached to it.
struct MachineAccount {
  std::string host;
};

// No account, for public buckets and emulators.
struct Anonymous {};

using TokenSource =
    std::variant<Anonymous, ServiceAccount, AuthorizedUser, ExternalAccount, MachineAccount>;

// An account. A value type.
struct Account {
  TokenSource source;
  // Where the source's token is exchanged for that of another service account; empty: nowhere.
  std::string impersonation_url;
  // Identifies the account, without secrets.
  std::string identity;
};

// Finds the account for a repository at `path`, as the user wrote it. Searches in this order: the
// file that the entry for the path in TRITON_CLOUD_CREDENTIAL_PATH names, if that variable is set;
// the file that GOOGLE_APPLICATION_CREDENTIALS names; none if `is_emulator`; the file of
// `gcloud auth application-default login`; the account of the machine.
base::Result<Account> FindAccount(std::string_view path,
                                  const object_store::Environment& environment, bool is_emulator);

// Reads a file of credentials. Errors do not quote it.
base::Result<Account> ParseAccount(std::string_view json);

}  // namespace nereid::gcs
