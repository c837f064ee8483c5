// SPDX-License-Identifier: Apache-2.0
// Which keys to use for a bucket, from where Triton and the tools of Amazon look for them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "s3/signature.h"

namespace nereid::s3 {

// With which keys, and in which region, a bucket is asked for at first: a reply may name another
// region.
struct Account {
  Credentials credentials;
  std::string region;
};

// A variable of the environment; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// That of this process.
Environment ProcessEnvironment();

// The account for a repository at `path`, as the user wrote it. In this order: the file that
// TRITON_CLOUD_CREDENTIAL_PATH names, which then must have an entry for the path; AWS_ACCESS_KEY_ID
// with AWS_SECRET_ACCESS_KEY; the profile AWS_PROFILE ("default") of the files that
// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name (~/.aws/credentials and ~/.aws/config);
// none, which is no error. Reads the files anew each time, so that changed keys are found.
base::Result<Account> FindAccount(std::string_view path, const Environment& environment);

// Sections and settings of a profile file. A section of "[profile x]" is called x.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles ParseProfiles(std::string_view text);

}  // namespace nereid::s3
