// SPDX-License-Identifier: Apache-2.0
#include "core/release_scope.h"

#include <algorithm>

namespace nereid::core {
namespace {

thread_local ReleaseScope* current = nullptr;

}  // namespace

ReleaseScope::ReleaseScope(std::vector<RequestRef>& kept)
    : kept_(kept), outer_(std::exchange(current, this)) {}

ReleaseScope::~ReleaseScope() {
  current = outer_;
  kept_.clear();
}

ReleaseScope* ReleaseScope::Current() { return current; }

bool ReleaseScope::Holds(const Request* request) const {
  return std::ranges::any_of(kept_, [=](const RequestRef& kept) { return &*kept == request; });
}

}  // namespace nereid::core
