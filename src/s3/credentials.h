// SPDX-License-Identifier: Apache-2.0
// Finds the keys for a bucket in the places where Triton and Amazon's tools look for them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "s3/signature.h"

namespace nereid::s3 {

// The keys and the initial region of a bucket; a reply may name another region.
struct Account {
  Credentials credentials;
  std::string region;
};

// Returns a variable of the environment, or nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The environment of this process.
Environment ProcessEnvironment();

// Finds the account for a repository at `path`, as the user wrote it. Searches in this order: the
// file that TRITON_CLOUD_CREDENTIAL_PATH names, which then must have an entry for the path;
// AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY; the profile AWS_PROFILE ("default") of the files
// that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name (~/.aws/credentials and ~/.aws/config).
// Finding none is not an error. Reads the files each time, so that changed keys take effect.
base::Result<Account> FindAccount(std::string_view path, const Environment& environment);

// The sections and settings of a profile file. A section "[profile x]" is called x.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles ParseProfiles(std::string_view text);

}  // namespace nereid::s3
