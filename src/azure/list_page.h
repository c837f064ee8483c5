// SPDX-License-Identifier: Apache-2.0
// The XML in the replies of Azure Storage.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "object_store/provider.h"

namespace nereid::azure {

// Parses one page of a list of blobs. The key of a folder in a hierarchical namespace gets a slash
// at its end.
base::Result<object_store::ListPage> ParseListPage(std::string_view xml);

// The content of an error's body.
struct ErrorBody {
  std::string code;
  std::string message;  // its first line; the others vary with each request
};
// Parses an error of Azure. The fields are empty for anything else.
ErrorBody ParseErrorBody(std::string_view xml);

}  // namespace nereid::azure
