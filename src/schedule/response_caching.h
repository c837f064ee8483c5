// SPDX-License-Identifier: Apache-2.0
// The response cache on the path of one model's requests. A scheduler asks it about every request that
// enters, before anything else:
//
//   if (caching_ != nullptr) {
//     if (core::ResponsePtr known = caching_->Find(*request)) {
//       order_.Join(*request);  // where answers keep their order: this one takes its turn
//       return schedule::Answer(std::move(request), std::move(known));
//     }
//   }
#pragma once

#include <memory>
#include <string>

#include "core/model.h"
#include "core/request.h"
#include "core/response_sink.h"
#include "core/response_cache.h"

namespace nereid::schedule {

// Immutable, thread-safe.
class ResponseCaching {
 public:
  // Null when `cache` is, or when the model does not ask for its responses to be kept. `cache` outlives
  // the model's requests. `fingerprint`: see MakeCacheKey.
  static std::unique_ptr<ResponseCaching> ForModel(const core::Model& model,
                                                   core::ResponseCache* cache,
                                                   std::string fingerprint);

  // The answer to the normalised `request`, when it has been asked before; the hit is counted.
  // Otherwise null, and the request's answer is kept, and the miss counted, on its way out, when it is
  // its only one and a success.
  core::ResponsePtr Find(core::Request& request) const;

 private:
  ResponseCaching(core::ResponseCache& cache, std::string fingerprint)
      : cache_(cache), fingerprint_(std::move(fingerprint)) {}

  core::ResponseCache& cache_;
  const std::string fingerprint_;
};

// Answers `request` with `response`, its only one, and releases it.
void Answer(core::RequestPtr request, core::ResponsePtr response);

}  // namespace nereid::schedule
