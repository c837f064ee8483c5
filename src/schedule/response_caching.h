// SPDX-License-Identifier: Apache-2.0
// The response cache for the requests of one model; CachingScheduler calls it for every request.
#pragma once

#include <memory>

#include "core/model.h"
#include "core/request.h"
#include "core/response_cache.h"
#include "core/response_sink.h"

namespace nereid::schedule {

// Immutable, thread-safe.
class ResponseCaching {
 public:
  // Returns null if `cache` is null, or if the model does not enable the cache. `cache` outlives
  // the model's requests.
  static std::unique_ptr<ResponseCaching> ForModel(const core::Model& model,
                                                   core::ResponseCache* cache);

  // Returns the threads on which Find is to be called; null if any thread may call it, because it
  // does not wait.
  base::TaskPool* threads() const { return cache_.threads(); }
  // Returns the cached response to the normalised `request`, and counts the hit. Otherwise returns
  // null; the request's response is then inserted, and the miss counted, when it is sent, if it is
  // the only one and a success.
  core::ResponsePtr Find(core::Request& request) const;

 private:
  ResponseCaching(core::ResponseCache& cache, bool has_epochs)
      : cache_(cache), has_epochs_(has_epochs) {}

  core::ResponseCache& cache_;
  // Which versions the steps of an ensemble find is not in the ensemble's own version.
  const bool has_epochs_;
};

}  // namespace nereid::schedule
