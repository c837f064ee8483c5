// SPDX-License-Identifier: Apache-2.0
// One T for each thread, made at the thread's first use and destroyed at its end. An access costs
// one lookup; a function's own thread_local with a constructor costs two and a test, which is
// measurable on the request path in a shared library.
#pragma once

namespace nereid::base {

// `Tag` distinguishes several objects of the same type T.
template <typename T, typename Tag = T>
class PerThread {
 public:
  static T& Get() {
    T* const mine = mine_;
    if (mine != nullptr) [[likely]]
      return *mine;
    return Make();
  }

 private:
  [[gnu::noinline]] static T& Make() {
    thread_local T object;
    mine_ = &object;
    return object;
  }

  static inline constinit thread_local T* mine_ = nullptr;
};

}  // namespace nereid::base
