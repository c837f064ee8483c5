// SPDX-License-Identifier: Apache-2.0
// The key of a request in the response cache.
#pragma once

#include <optional>

#include "core/request.h"
#include "core/response_cache.h"

namespace nereid::schedule {

// The key stands for everything that a response can depend on: the model's name, version and
// fingerprint (so that a reloaded model does not return the responses of its predecessor), every
// input's name, type, shape and bytes, the requested outputs, the request's parameters, and
// sequence id and flags. Clients choose these bytes, and a client that found two requests with one
// key could get or replace the responses of others; this must be impossible.
//
// Without a secret the key is a SHA-256 of all this, the same in every process, for caches that
// several servers share. With a secret, large inputs are represented by a keyed hash, in an eighth
// of the time; cache_key.cc says why that is as safe while the secret is kept.
//
// REQUIRES: the request is normalised. Returns nothing if an input does not lie in CPU memory or
// was added by the server, or if memory is exhausted.
std::optional<core::CacheKey> MakeCacheKey(const core::Request& request,
                                           const core::CacheSecret* secret = nullptr);

}  // namespace nereid::schedule
