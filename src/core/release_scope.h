// SPDX-License-Identifier: Apache-2.0
// Keeps the memory of requests that are released on this thread until the scope ends. It surrounds
// every call of a plug-in that executes requests, because some of Triton's backends access a
// request, or report its statistics, after they released it. The release itself is not delayed: the
// client is notified, the inputs are freed, and the scheduler continues at once. Costs no atomic
// operation and, if `kept` has the capacity, no allocation.
#pragma once

#include <vector>

#include "core/request.h"

namespace nereid::core {

// Confined to the thread that made it; scopes nest.
class ReleaseScope {
 public:
  // `kept` is empty before and after the scope.
  explicit ReleaseScope(std::vector<RequestRef>& kept);
  // Drops the kept requests, which may call OnRequestGone of their sinks.
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope&) = delete;
  ReleaseScope& operator=(const ReleaseScope&) = delete;

  // Returns the innermost scope of this thread, or null.
  static ReleaseScope* Current() { return current_; }
  void Keep(RequestRef request) { kept_.push_back(std::move(request)); }
  // Whether `request` was released while this was the innermost scope. Takes time linear in the
  // kept requests.
  bool Holds(const Request* request) const;

  // Whether `request`, which must not be in a queue, was released and exists only because of a
  // scope.
  static bool IsReleased(const Request& request) { return request.next == &request; }

 private:
  static inline constinit thread_local ReleaseScope* current_ = nullptr;

  std::vector<RequestRef>& kept_;
  ReleaseScope* const outer_;
};

}  // namespace nereid::core
