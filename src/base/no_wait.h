// SPDX-License-Identifier: Apache-2.0
// Tells code that would wait for other threads or for a client that its thread must not: reactors,
// the timers' thread, and threads of a response cache that respond. Everybody depends on those,
// perhaps also whom the code would wait for.
#pragma once

#include <utility>

namespace nereid::base {

// Its thread must not wait while one exists. Confined to that thread.
class NoWaitScope {
 public:
  NoWaitScope() : outer_(std::exchange(is_here_, true)) {}
  ~NoWaitScope() { is_here_ = outer_; }
  NoWaitScope(const NoWaitScope&) = delete;
  NoWaitScope& operator=(const NoWaitScope&) = delete;

  static bool IsHere() { return is_here_; }

 private:
  static inline constinit thread_local bool is_here_ = false;

  const bool outer_;
};

}  // namespace nereid::base
