// SPDX-License-Identifier: Apache-2.0
#include "core/release_scope.h"

#include <algorithm>

namespace nereid::core {

ReleaseScope::ReleaseScope(std::vector<RequestRef>& kept)
    : kept_(kept), outer_(std::exchange(current_, this)) {}

ReleaseScope::~ReleaseScope() {
  current_ = outer_;
  kept_.clear();
}

bool ReleaseScope::Holds(const Request* request) const {
  return std::ranges::any_of(kept_, [=](const RequestRef& kept) { return &*kept == request; });
}

}  // namespace nereid::core
