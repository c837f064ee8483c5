// SPDX-License-Identifier: Apache-2.0
// Finds the keys for a bucket in the places where Triton and Amazon's tools look for them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "object_store/environment.h"
#include "s3/key_source.h"
#include "s3/signature.h"

namespace nereid::s3 {

using object_store::Environment;

// The keys and the initial region of a bucket; a reply may name another region.
struct Account {
  Credentials credentials;
  std::string region;
  KeySource source;  // gives temporary keys if `credentials` has none
};

// Finds the account for a repository at `path`, as the user wrote it. Searches in this order: the
// file that TRITON_CLOUD_CREDENTIAL_PATH names, which then must have an entry for the path;
// AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY; the profile AWS_PROFILE ("default") of the files
// that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name (~/.aws/credentials and ~/.aws/config).
// Where these have no keys, the account has a source of temporary ones: the role of a web identity,
// the container, or the machine. Reads the files each time, so that changed keys take effect.
base::Result<Account> FindAccount(std::string_view path, const Environment& environment);

// The sections and settings of a profile file. A section "[profile x]" is called x.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles ParseProfiles(std::string_view text);

}  // namespace nereid::s3
