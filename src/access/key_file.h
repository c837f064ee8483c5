// SPDX-License-Identifier: Apache-2.0
// Changes of the file of --api-keys, for `nereid keys`: everything else in the file stays as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nereid::access {

// A key as the file describes it.
struct KeyEntry {
  std::string id;
  std::vector<std::string> scopes;
  std::vector<std::string> models;  // empty: all
  std::string expires;              // empty: never
  std::string created;              // empty: unknown
};

// Each reads the file, and an error says what is wrong in it. The changed file takes the place of
// the old one in one step, so that a server never reads half of it; it keeps its permissions, and
// only its owner can read a new one.

// Adds a key whose `created` is the current time, and returns the key: it is nowhere else. A file
// that is not there is made. AlreadyExists if the id is in use.
base::Result<std::string> AddKey(const std::string& file, const KeyEntry& entry);
// NotFound if there is no such key.
base::Status RevokeKey(const std::string& file, std::string_view id);
base::Result<std::vector<KeyEntry>> ListKeys(const std::string& file);

}  // namespace nereid::access
