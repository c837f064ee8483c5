// SPDX-License-Identifier: Apache-2.0
// The time that a worker has for a response.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "python_backend/worker.h"

namespace nereid::python {

// Ends the worker if it has had a request for longer than `limit` since `last_activity_ns`, of the
// server's clock: when it got the request, or last responded to it. Does nothing without a limit.
void CheckTime(Worker& worker, std::optional<std::chrono::milliseconds> limit,
               uint64_t last_activity_ns);

}  // namespace nereid::python
