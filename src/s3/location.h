// SPDX-License-Identifier: Apache-2.0
// Where something lies in S3, as users write it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::s3 {

// A value type.
struct Location {
  std::string
      endpoint;  // "http://host:port" or "https://host:port"; empty: Amazon's for the region
  std::string bucket;
  std::string key;  // without slashes at its ends; empty: the whole bucket

  // The same in one form for all ways to write it.
  std::string ToString() const;
  // The key, ready to have something appended: with a slash at its end unless it is empty.
  std::string Prefix() const { return key.empty() ? key : key + "/"; }
};

// Whether `path` is meant for S3 at all.
bool IsS3(std::string_view path);

// Reads s3://bucket/key, s3://host:port/bucket/key and s3://http[s]://host[:port]/bucket/key.
// Doubled slashes count once. An error when no bucket is named.
base::Result<Location> ParseLocation(std::string_view path);

}  // namespace nereid::s3
