// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers from outside: every sum and product of sizes goes through here.
#pragma once

#include <concepts>
#include <optional>

namespace nereid::base {

// Returns a + b, or nothing if the type cannot hold it.
template <std::integral T>
constexpr std::optional<T> CheckedAdd(T a, T b) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// Returns a * b, or nothing if the type cannot hold it.
template <std::integral T>
constexpr std::optional<T> CheckedMul(T a, T b) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace nereid::base
