// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include <fmt/format.h>

namespace nereid::cli {
namespace {

std::string ThreeDigits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

}  // namespace

std::string FormatNanoseconds(double ns) {
  if (ns < 999.5) return fmt::format("{:.0f} ns", ns);
  if (ns < 999.5e3) return ThreeDigits(ns / 1e3) + " us";
  if (ns < 999.5e6) return ThreeDigits(ns / 1e6) + " ms";
  return ThreeDigits(ns / 1e9) + " s";
}

std::string FormatRate(double rate) {
  if (rate == 0) return "0";
  return rate < 0.1 ? fmt::format("{:.3g}", rate) : ThreeDigits(rate);
}

std::string Counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string FormatAge(int64_t seconds) {
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

}  // namespace nereid::cli
