// SPDX-License-Identifier: Apache-2.0
// Where temporary keys for Amazon come from: the role of a web identity (Kubernetes), the container
// (ECS, EKS) or the machine (EC2).
#pragma once

#include <string>
#include <variant>

#include "base/status.h"
#include "http_client/http_client.h"
#include "object_store/environment.h"
#include "object_store/renewed.h"
#include "s3/signature.h"

namespace nereid::s3 {

// A token in a file that the security token service exchanges for keys.
struct WebIdentity {
  std::string role_arn;
  std::string token_file;
  std::string session_name;
  std::string endpoint;  // of the service

  bool operator==(const WebIdentity&) const = default;
};

// An agent beside the container.
struct ContainerKeys {
  std::string url;
  std::string authorization;       // the value of that header; empty: none
  std::string authorization_file;  // a file with it, read for every request; empty: none

  bool operator==(const ContainerKeys&) const = default;
};

// The metadata service of the machine, version 2.
struct MachineKeys {
  std::string endpoint;

  bool operator==(const MachineKeys&) const = default;
};

using KeySource = std::variant<std::monostate, WebIdentity, ContainerKeys, MachineKeys>;

// What a profile says about a web identity; fields may be empty.
struct ProfileIdentity {
  std::string role_arn;
  std::string token_file;
  std::string session_name;
};

// Returns the first that is configured: the variables AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE,
// the same in `profile`, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or …_FULL_URI, and at last the
// machine unless AWS_EC2_METADATA_DISABLED is true.
KeySource FindKeySource(const object_store::Environment& environment, const std::string& region,
                        const ProfileIdentity& profile);

// Names the source, without secrets: equal sources have equal names.
std::string NameOf(const KeySource& source);

// Fetches keys. A machine whose metadata service does not respond, or that has no role, gives empty
// ones, which leave requests unsigned, with Expiring::absence. Errors quote no token and no key.
base::Result<object_store::Expiring<Credentials>> FetchKeys(http_client::HttpClient& client,
                                                            const KeySource& source);

}  // namespace nereid::s3
