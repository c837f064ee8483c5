// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace nereid::base {
namespace {

// `high` * 2^64 + `low`, scaled by a power of two so that the highest bit is set.
struct Power {
  uint64_t high;
  uint64_t low;
};

constexpr int kLeastPower = -292;
constexpr int kGreatestPower = 324;

// A natural number of 1,344 bits, enough for 10^324 and for 2^1280 / 10^292 to keep 128 exact bits.
// Least significant limb first.
class Large {
 public:
  static constexpr size_t kLimbs = 42;

  constexpr void SetBit(size_t bit) { limbs_[bit / 32] |= uint32_t{1} << bit % 32; }
  constexpr void MultiplyBy10() {
    uint64_t carry = 0;
    for (uint32_t& limb : limbs_) {
      carry += uint64_t{limb} * 10;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  // The remainder says whether the quotient is exact.
  constexpr bool DivideBy10() {
    uint64_t rest = 0;
    for (size_t i = kLimbs; i-- > 0;) {
      rest = rest << 32 | limbs_[i];
      limbs_[i] = static_cast<uint32_t>(rest / 10);
      rest %= 10;
    }
    return rest == 0;
  }
  // The highest 128 bits, rounded up where something is cut off; `is_exact`: nothing was before.
  constexpr Power Top(bool is_exact) const {
    size_t top = kLimbs - 1;
    while (limbs_[top] == 0) --top;
    const size_t bits = top * 32 + static_cast<size_t>(std::bit_width(limbs_[top]));
    Power power{0, 0};
    for (size_t i = 0; i < 128 && i < bits; ++i) {
      const size_t bit = bits - 1 - i;
      if ((limbs_[bit / 32] >> bit % 32 & 1) == 0) continue;
      (i < 64 ? power.high : power.low) |= uint64_t{1} << (63 - i % 64);
    }
    for (size_t bit = 0; bit + 128 < bits && is_exact; ++bit) {
      if ((limbs_[bit / 32] >> bit % 32 & 1) != 0) is_exact = false;
    }
    if (is_exact) return power;
    if (++power.low == 0) ++power.high;
    return power;
  }

 private:
  std::array<uint32_t, kLimbs> limbs_{};
};

using Powers = std::array<Power, kGreatestPower - kLeastPower + 1>;

Powers MakePowers() {
  Powers powers{};
  Large number;
  number.SetBit(0);
  for (int power = 0; power <= kGreatestPower; ++power) {
    powers[static_cast<size_t>(power - kLeastPower)] = number.Top(true);
    number.MultiplyBy10();
  }
  number = Large();
  number.SetBit(1280);
  for (int power = -1; power >= kLeastPower; --power) {
    number.DivideBy10();  // never exact: no power of two is a multiple of 5
    powers[static_cast<size_t>(power - kLeastPower)] = number.Top(false);
  }
  return powers;
}

const Power& PowerOf10(int power) {
  static const Powers powers = MakePowers();
  return powers[static_cast<size_t>(power - kLeastPower)];
}

// The highest 64 bits of `power` * `factor`, with the lowest of them set where anything below is,
// so that comparisons see the difference.
uint64_t ScaleToOdd(const Power& power, uint64_t factor) {
  __extension__ using Uint128 = unsigned __int128;
  const Uint128 low = Uint128{power.low} * factor;
  const Uint128 high = Uint128{power.high} * factor + static_cast<uint64_t>(low >> 64);
  return static_cast<uint64_t>(high >> 64) | (static_cast<uint64_t>(high) > 1);
}

// floor(log10(2^exponent)), or of three quarters of that; floor(log2(10^exponent)).
constexpr int FloorLog10Pow2(int exponent) { return exponent * 1'262'611 >> 22; }
constexpr int FloorLog10ThreeQuartersPow2(int exponent) {
  return (exponent * 1'262'611 - 524'031) >> 22;
}
constexpr int FloorLog2Pow10(int exponent) { return exponent * 1'741'647 >> 19; }

Decimal WithoutZeros(Decimal number) {
  // Numbers that people write have few digits, after which the method leaves many zeros.
  if (number.digits % 100'000'000 == 0) {
    number.digits /= 100'000'000;
    number.exponent += 8;
  }
  if (number.digits % 10'000 == 0) {
    number.digits /= 10'000;
    number.exponent += 4;
  }
  if (number.digits % 100 == 0) {
    number.digits /= 100;
    number.exponent += 2;
  }
  while (number.digits % 10 == 0) {
    number.digits /= 10;
    ++number.exponent;
  }
  return number;
}

constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

void WritePair(uint32_t pair, char* out) { std::memcpy(out, kPairs.data() + size_t{pair} * 2, 2); }

void WriteEight(uint32_t number, char* out) {
  const uint32_t high = number / 10'000;
  const uint32_t low = number % 10'000;
  WritePair(high / 100, out);
  WritePair(high % 100, out + 2);
  WritePair(low / 100, out + 4);
  WritePair(low % 100, out + 6);
}

// Up to eight digits.
char* WriteFew(uint32_t number, char* out) {
  if (number < 100) {
    if (number < 10) {
      *out = static_cast<char>('0' + number);
      return out + 1;
    }
    WritePair(number, out);
    return out + 2;
  }
  const size_t count = 3 + (number >= 1'000) + (number >= 10'000) + (number >= 100'000) +
                       (number >= 1'000'000) + (number >= 10'000'000);
  char text[8];
  WriteEight(number, text);
  char* const end = out + count;
  std::memcpy(out, text + (8 - count), count);
  return end;
}

}  // namespace

Decimal ShortestDecimal(double value) {
  constexpr int kFractionBits = 52;
  constexpr int kBias = 1023 + kFractionBits;
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t fraction = bits & ((uint64_t{1} << kFractionBits) - 1);
  const int biased = static_cast<int>(bits >> kFractionBits);
  const uint64_t significand = biased != 0 ? fraction | uint64_t{1} << kFractionBits : fraction;
  const int exponent = biased != 0 ? biased - kBias : 1 - kBias;

  // Below a power of two doubles lie closer. Everything is in quarters of the last binary place.
  const bool is_closer_below = fraction == 0 && biased > 1;
  const uint64_t center = 4 * significand;
  const uint64_t below = center - (is_closer_below ? 1 : 2);
  const uint64_t above = center + 2;
  const int power =
      is_closer_below ? FloorLog10ThreeQuartersPow2(exponent) : FloorLog10Pow2(exponent);
  const int shift = exponent + FloorLog2Pow10(-power) + 1;
  const Power& scale = PowerOf10(-power);
  const uint64_t scaled = ScaleToOdd(scale, center << shift);
  // Numbers on the border round to `value` where its significand is even.
  const uint64_t is_open = significand & 1;
  const uint64_t least = ScaleToOdd(scale, below << shift) + is_open;
  const uint64_t greatest = ScaleToOdd(scale, above << shift) - is_open;

  const uint64_t floor = scaled / 4;
  if (floor >= 10) {
    // One digit fewer, if exactly one such number reads back.
    const uint64_t shorter = floor / 10;
    const bool takes_lower = least <= 40 * shorter;
    const bool takes_upper = 40 * shorter + 40 <= greatest;
    if (takes_lower != takes_upper) {
      return WithoutZeros({shorter + (takes_upper ? 1 : 0), power + 1});
    }
  }
  const bool takes_lower = least <= 4 * floor;
  const bool takes_upper = 4 * floor + 4 <= greatest;
  if (takes_lower != takes_upper) return WithoutZeros({floor + (takes_upper ? 1 : 0), power});
  const uint64_t middle = 4 * floor + 2;
  const bool rounds_up = scaled > middle || (scaled == middle && (floor & 1) != 0);
  return WithoutZeros({floor + (rounds_up ? 1 : 0), power});
}

char* WriteDigits(uint64_t number, char* out) {
  constexpr uint64_t kEight = 100'000'000;
  if (number < kEight) return WriteFew(static_cast<uint32_t>(number), out);
  const uint64_t high = number / kEight;
  out = high < kEight ? WriteFew(static_cast<uint32_t>(high), out) : WriteDigits(high, out);
  WriteEight(static_cast<uint32_t>(number % kEight), out);
  return out + 8;
}

}  // namespace nereid::base
