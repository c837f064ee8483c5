// SPDX-License-Identifier: Apache-2.0
// The key of a request in the response cache.
#pragma once

#include <optional>

#include "core/request.h"
#include "core/response_cache.h"

namespace nereid::schedule {

// A SHA-256 over everything that an answer can depend on: the model's name, version and
// fingerprint (so that a reloaded model does not give the answers of its predecessor), every input's
// name, type, shape and bytes, which outputs are asked for, the request's parameters, and
// sequence id and flags. Clients choose the bytes, hence a hash that nobody can find collisions of.
//
// Needs a normalised request. Nothing when an input does not lie in CPU memory or was added by the
// server, or when memory is exhausted.
std::optional<core::CacheKey> MakeCacheKey(const core::Request& request);

}  // namespace nereid::schedule
