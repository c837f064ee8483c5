// SPDX-License-Identifier: Apache-2.0
// The key of a request in the response cache.
#pragma once

#include <optional>

#include "core/request.h"
#include "core/response_cache.h"

namespace nereid::schedule {

// Stands for everything that an answer can depend on: the model's name, version and fingerprint (so
// that a reloaded model does not give the answers of its predecessor), every input's name, type,
// shape and bytes, which outputs are asked for, the request's parameters, and sequence id and
// flags. Clients choose the bytes, and one who found two questions with one key would be given
// somebody else's answer or give others his; nobody can.
//
// Without a secret it is a SHA-256 of it all, the same in every process, for caches that several
// servers share. With one, large inputs go into that as what a keyed hash made of them, in an
// eighth of the time; cache_key.cc says why that is as good as long as the secret is one.
//
// Needs a normalised request. Nothing when an input does not lie in CPU memory or was added by the
// server, or when memory is exhausted.
std::optional<core::CacheKey> MakeCacheKey(const core::Request& request,
                                           const core::CacheSecret* secret = nullptr);

}  // namespace nereid::schedule
