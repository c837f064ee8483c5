// SPDX-License-Identifier: Apache-2.0
// Decides which requests of a model can share a batch: those with the same inputs in the same
// shapes, as far as the model's configuration allows different ones.
#pragma once

#include "core/model.h"
#include "core/request.h"

namespace nereid::schedule {

// Immutable.
class RequestMatcher {
 public:
  // `model` outlives the matcher.
  explicit RequestMatcher(const core::Model& model);

  // Both are normalised. Inputs that the server added do not count.
  bool Match(const core::Request& first, const core::Request& other) const;

 private:
  const core::Model& model_;
  // False if the configuration fixes everything.
  const bool compares_inputs_;
};

}  // namespace nereid::schedule
