// SPDX-License-Identifier: Apache-2.0
// The model repository extension: the index, loading and unloading. All of it may wait for disks
// and models, so it runs where the service says that it may block (Service::RunBlocking). Private
// to this module.
#pragma once

#include "http/route.h"
#include "http1/http_server.h"
#include "service/service.h"

namespace nereid::http {

// Takes a request whose body is within the limits and whose route is one of kRepositoryIndex,
// kRepositoryLoad and kRepositoryUnload; answers it later, from another thread.
void HandleRepository(http1::HttpExchangePtr exchange, const Route& route,
                      service::Service& service);

}  // namespace nereid::http
