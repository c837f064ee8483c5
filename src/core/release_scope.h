// SPDX-License-Identifier: Apache-2.0
// Keeps the memory of requests that are released on this thread until the scope ends. Around every
// call into a plug-in that executes: some backends of Triton go on asking about a request, or
// report its statistics, after they have released it. Releasing itself is not put off: the client
// hears of it, its inputs are freed, and its scheduler goes on at once. Costs no atomic operation
// and, where `kept` has the room, no allocation.
#pragma once

#include <vector>

#include "core/request.h"

namespace nereid::core {

// Confined to the thread that made it; scopes nest.
class ReleaseScope {
 public:
  // `kept` is empty, and is again afterwards.
  explicit ReleaseScope(std::vector<RequestRef>& kept);
  // Lets go of what was kept; sinks may hear OnRequestGone.
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope&) = delete;
  ReleaseScope& operator=(const ReleaseScope&) = delete;

  // The innermost one of this thread; null: none.
  static ReleaseScope* Current() { return current_; }
  void Keep(RequestRef request) { kept_.push_back(std::move(request)); }
  // Whether `request` was released while this was the innermost scope. Takes a look at all of them.
  bool Holds(const Request* request) const;

  // Whether `request`, which is in no queue, has been released and is here because of a scope.
  static bool IsReleased(const Request& request) { return request.next == &request; }

 private:
  static inline constinit thread_local ReleaseScope* current_ = nullptr;

  std::vector<RequestRef>& kept_;
  ReleaseScope* const outer_;
};

}  // namespace nereid::core
