// SPDX-License-Identifier: Apache-2.0
// The JSON in the replies of Google Cloud Storage.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "object_store/provider.h"

namespace nereid::gcs {

// Parses one page of a list of objects. Object::etag is the generation, which Google changes with
// the contents and with nothing else.
base::Result<object_store::ListPage> ParseListPage(std::string_view json);

}  // namespace nereid::gcs
