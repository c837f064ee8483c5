// SPDX-License-Identifier: Apache-2.0
// The XML in S3's replies.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "object_store/provider.h"

namespace nereid::s3 {

// Parses one page of ListObjectsV2 with encoding-type=url.
base::Result<object_store::ListPage> ParseListPage(std::string_view xml);

// The content of an error's body.
struct ErrorBody {
  std::string code;
  std::string message;
  std::string region;  // the bucket's region, if the error names it
};
// Parses an error of S3. The fields are empty for anything else.
ErrorBody ParseErrorBody(std::string_view xml);

// Converts "2026-01-31T12:34:56.789Z" to nanoseconds since 1970; returns nothing for anything else.
std::optional<int64_t> ParseTime(std::string_view text);

}  // namespace nereid::s3
