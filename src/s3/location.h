// SPDX-License-Identifier: Apache-2.0
// Locations in S3, as users write them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::s3 {

// A bucket or a key in it. A value type.
struct Location {
  std::string
      endpoint;  // "http://host:port" or "https://host:port"; empty: Amazon's for the region
  std::string bucket;
  std::string key;  // without slashes at its ends; empty: the whole bucket

  // Returns the canonical spelling.
  std::string ToString() const;
  // Returns the key as a prefix for more: with a slash at its end unless it is empty.
  std::string Prefix() const { return key.empty() ? key : key + "/"; }
};

// Parses s3://bucket/key, s3://host:port/bucket/key and s3://http[s]://host[:port]/bucket/key.
// Repeated slashes count once. Fails if no bucket is named.
base::Result<Location> ParseLocation(std::string_view path);

}  // namespace nereid::s3
