// SPDX-License-Identifier: Apache-2.0
// The file with the accounts of all clouds that TRITON_CLOUD_CREDENTIAL_PATH names:
//
//   {"gs": {"": "key.json"}, "s3": {"s3://bucket": {"key_id": …}}, "as": {"": {"account_str": …}}}
//
// The entry whose name is the longest prefix of a repository's path is that of the repository.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "object_store/environment.h"

namespace nereid::object_store {

// The entry of an account. A value type.
struct CredentialEntry {
  std::string text;                           // of an entry that is a string
  std::map<std::string, std::string> fields;  // strings of an entry that is an object

  // Returns a field, empty if there is none.
  std::string Field(const std::string& name) const;
};

// Returns the entry for `path` in a section ("gs", "s3" or "as") of the file, or nothing if the
// variable is not set. Fails if the file cannot be read or has no entry for the path.
base::Result<std::optional<CredentialEntry>> FindCredentialEntry(const Environment& environment,
                                                                 const char* section,
                                                                 std::string_view path);

// Reads a file with keys or a token, of up to 1 MiB.
base::Result<std::string> ReadKeyFile(const std::string& path);

}  // namespace nereid::object_store
