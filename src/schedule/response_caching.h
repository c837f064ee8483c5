// SPDX-License-Identifier: Apache-2.0
// The response cache on the path of one model's requests; see CachingScheduler, which asks it about
// every request.
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
  // Null when `cache` is, or when the model does not ask for its responses to be kept. `cache`
  // outlives the model's requests.
  static std::unique_ptr<ResponseCaching> ForModel(const core::Model& model,
                                                   core::ResponseCache* cache);

  // The answer to the normalised `request`, when it has been asked before; the hit is counted.
  // Otherwise null, and the request's answer is kept, and the miss counted, on its way out, when it
  // is its only one and a success.
  core::ResponsePtr Find(core::Request& request) const;

 private:
  explicit ResponseCaching(core::ResponseCache& cache) : cache_(cache) {}

  core::ResponseCache& cache_;
};

}  // namespace nereid::schedule
