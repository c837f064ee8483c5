// SPDX-License-Identifier: Apache-2.0
// The XML that S3 answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "object_store/provider.h"

namespace nereid::s3 {

// Reads one page of ListObjectsV2 with encoding-type=url.
base::Result<object_store::ListPage> ParseListPage(std::string_view xml);

// What the body of an error says.
struct ErrorBody {
  std::string code;
  std::string message;
  std::string region;  // where the bucket is, if the error says so
};
// Empty fields for what is no error of S3.
ErrorBody ParseErrorBody(std::string_view xml);

// "2026-01-31T12:34:56.789Z" in nanoseconds since 1970; nothing for anything else.
std::optional<int64_t> ParseTime(std::string_view text);

}  // namespace nereid::s3
