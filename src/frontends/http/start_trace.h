// SPDX-License-Identifier: Apache-2.0
// Begins the trace of a request that is one of those to be traced. For this module and `openai`.
#pragma once

#include <memory>
#include <string_view>

#include "http1/http_server.h"
#include "observe/trace.h"

namespace nereid::http {

// Returns null unless the request is traced. `tracing` may be null: no traces.
std::shared_ptr<observe::Trace> StartTrace(observe::Tracing* tracing,
                                           const http1::HttpExchange& exchange,
                                           std::string_view model);

}  // namespace nereid::http
