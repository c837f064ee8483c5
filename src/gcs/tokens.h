// SPDX-License-Identifier: Apache-2.0
// Access tokens of Google Cloud.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "base/status.h"
#include "gcs/account.h"
#include "http_client/http_client.h"
#include "object_store/renewed.h"

namespace nereid::gcs {

// Fetches a token that permits to read objects. It is empty for an anonymous account and, with
// Expiring::absence, on a machine that has no account or whose metadata server does not respond.
// Errors quote no token and no key.
base::Result<object_store::Expiring<std::string>> FetchToken(http_client::HttpClient& client,
                                                             const Account& account);

// Returns the signed request of a service account for a token with this scope.
base::Result<std::string> MakeAssertion(const ServiceAccount& account, std::string_view scope,
                                        std::time_t now);

}  // namespace nereid::gcs
