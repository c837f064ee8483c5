// SPDX-License-Identifier: Apache-2.0
// The XML in S3's replies.
#pragma once

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

}  // namespace nereid::s3
