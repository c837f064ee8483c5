// SPDX-License-Identifier: Apache-2.0
// Finds the account for a container in the places where Triton and Azure's tools look for it.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "azure/location.h"
#include "base/status.h"
#include "object_store/environment.h"

namespace nereid::azure {

// The key of a storage account, which signs requests.
struct SharedKey {
  std::string key;  // decoded
};

// A shared access signature, which is part of each address.
struct SharedAccessSignature {
  std::string query;  // without a question mark
};

// An application with a secret.
struct ClientSecret {
  std::string tenant, client_id, secret, authority;
};

// An application that proves who it is by a token of Kubernetes.
struct WorkloadIdentity {
  std::string tenant, client_id, token_file, authority;
};

// The identity of the machine (or of the App Service) that the server runs on.
struct ManagedIdentity {
  std::string endpoint;   // of the token service
  std::string header;     // App Service's secret header; empty: a machine
  std::string client_id;  // of an identity that a user assigned; empty: the machine's own
};

// No account, for public containers.
struct Anonymous {};

using Access = std::variant<Anonymous, SharedKey, SharedAccessSignature, ClientSecret,
                            WorkloadIdentity, ManagedIdentity>;

// Whether requests have a token, rather than a signature or nothing.
inline bool HasTokens(const Access& access) {
  return std::holds_alternative<ClientSecret>(access) ||
         std::holds_alternative<WorkloadIdentity>(access) ||
         std::holds_alternative<ManagedIdentity>(access);
}

// An account. A value type.
struct Account {
  std::string name;
  std::string endpoint;  // of its blobs, without a slash at its end
  Access access;
  // Identifies the account, without secrets.
  std::string identity;
};

// Finds the account for a repository at `path`, as the user wrote it, and its location there. The
// entry for the path in TRITON_CLOUD_CREDENTIAL_PATH counts, if that variable is set, or else the
// variables AZURE_STORAGE_*; docs/clouds.md has the names.
base::Result<Account> FindAccount(std::string_view path, const Location& location,
                                  const object_store::Environment& environment);

}  // namespace nereid::azure
