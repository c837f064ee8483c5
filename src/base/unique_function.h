// SPDX-License-Identifier: Apache-2.0
// A callable that owns its captures and can be moved but not copied (std::move_only_function is not
// in this toolchain's library).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace nereid::base {

template <typename Signature>
class UniqueFunction;

template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  template <typename F>
    requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  UniqueFunction(F&& function)
      : callable_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(function))) {}

  explicit operator bool() const { return callable_ != nullptr; }
  R operator()(Args... args) { return callable_->Call(std::forward<Args>(args)...); }

 private:
  // Hides the type of the function object.
  struct Callable {
    virtual ~Callable() = default;
    virtual R Call(Args... args) = 0;
  };
  // A function object of type F.
  template <typename F>
  struct Holder final : Callable {
    explicit Holder(F f) : function(std::move(f)) {}
    R Call(Args... args) override { return function(std::forward<Args>(args)...); }
    F function;
  };

  std::unique_ptr<Callable> callable_;
};

}  // namespace nereid::base
