// SPDX-License-Identifier: Apache-2.0
// Access tokens of Azure.
#pragma once

#include <string>

#include "azure/account.h"
#include "base/status.h"
#include "http_client/http_client.h"
#include "object_store/renewed.h"

namespace nereid::azure {

// Fetches a token for Azure Storage; it is empty for an access that needs none. Errors quote no
// token and no secret.
base::Result<object_store::Expiring<std::string>> FetchToken(http_client::HttpClient& client,
                                                             const Access& access);

}  // namespace nereid::azure
