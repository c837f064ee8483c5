// SPDX-License-Identifier: Apache-2.0
// Locations in Azure Storage, as users write them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::azure {

// A container or a key in it. A value type.
struct Location {
  std::string host;  // an account, or the host of its blobs
  std::string container;
  std::string key;  // without slashes at its ends; empty: the whole container
};

// Returns the path with as://, as Triton spells it, in place of azure://.
std::string SpelledAsInTriton(std::string_view path);

// Parses as://account/container/key and as://account.blob.core.windows.net/container/key, or
// the same with azure://. Repeated slashes count once. Fails where account or container are
// missing, and for a shared access signature: it would be in every message about the path.
base::Result<Location> ParseLocation(std::string_view path);

// Returns the account of a host: what stands in front of its first dot.
std::string AccountOf(const std::string& host);

}  // namespace nereid::azure
