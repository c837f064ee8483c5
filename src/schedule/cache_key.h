// SPDX-License-Identifier: Apache-2.0
// The key of a request in the response cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/model_config.h"
#include "core/request.h"
#include "core/response_cache.h"

namespace nereid::schedule {

// Returns the fingerprint of a model's version for MakeCacheKey: of the times of its files, and of
// all in its configuration that a response can depend on, which a load request can replace while
// the files stay as they are. The same in every process.
std::string ModelFingerprint(int64_t latest_file_ns, const config::ModelConfig& config);

// The key stands for everything that a response can depend on: the model's identity, version and
// fingerprint (so that a reloaded model does not return the responses of its predecessor), every
// input's name, type, shape and bytes, the requested outputs, the request's parameters, sequence id
// and flags, and `epoch` (ResponseCache::epoch, or 0 if the model's version says it all). Clients
// choose these bytes, and a client that found two requests with one key could get or replace the
// responses of others; this must be impossible.
//
// Without a secret the key is a SHA-256 of all this, the same in every process, for caches that
// several servers share. With a secret, large inputs are represented by a keyed hash, in an eighth
// of the time; cache_key.cc says why that is as safe while the secret is kept.
//
// REQUIRES: the request is normalised. Returns nothing if an input does not lie in CPU memory or
// was added by the server, or if memory is exhausted.
std::optional<core::CacheKey> MakeCacheKey(const core::Request& request,
                                           const core::CacheSecret* secret = nullptr,
                                           uint64_t epoch = 0);

}  // namespace nereid::schedule
