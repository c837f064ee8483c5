// SPDX-License-Identifier: Apache-2.0
// The shortest decimal number that reads back as a given double, by Raffaello Giulietti's method
// ("The Schubfach way to render doubles", 2020): three products with a tabulated power of ten, and
// no loop over digits. Printing a tensor as JSON is mostly this.
#pragma once

#include <cstdint>

namespace nereid::base {

// digits * 10^exponent; `digits` has at most 17 digits and does not end in 0.
struct Decimal {
  uint64_t digits;
  int exponent;
};

// Of the shortest ones the closest to `value`, which is finite and greater than 0.
Decimal ShortestDecimal(double value);

// Writes `number` to `out`, which has room for 20 characters; returns their end.
char* WriteDigits(uint64_t number, char* out);

}  // namespace nereid::base
