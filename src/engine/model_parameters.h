// SPDX-License-Identifier: Apache-2.0
// The entries of `parameters` in a model's configuration that mean something to the server.
#pragma once

#include "base/status.h"
#include "config/model_config.h"
#include "core/caller.h"

namespace nereid::engine {

// Returns whether the model limits its requests in flight by its speed (adaptive_concurrency:
// "true" or "false"); `otherwise` if it does not say so.
base::Result<bool> AdaptsConcurrency(const config::ModelConfig& config, bool otherwise);

// Returns what each caller may take of the model: caller_requests_per_second,
// caller_bytes_per_second and caller_in_flight.
base::Result<core::CallerLimits> CallerLimitsOf(const config::ModelConfig& config);

}  // namespace nereid::engine
