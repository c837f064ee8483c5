// SPDX-License-Identifier: Apache-2.0
// The model repository extension: the index, loading and unloading. These may wait for disks and
// models, so they run on a thread that may block (Service::RunBlocking). Private to this module.
#pragma once

#include <climits>
#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "http/route.h"
#include "http1/http_server.h"
#include "service/service.h"

namespace nereid::http {

// Reads the body of a request that loads a model; an empty one has no options. The base64 text of a
// file has at most `most` bytes.
base::Result<service::LoadOptions> ReadLoadOptions(std::string_view body, size_t most = INT_MAX);

// Handles a request whose body is within the limits and whose route is kRepositoryIndex,
// kRepositoryLoad or kRepositoryUnload; replies later, from another thread.
void HandleRepository(http1::HttpExchangePtr exchange, const Route& route,
                      service::Service& service);

}  // namespace nereid::http
