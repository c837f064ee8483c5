// SPDX-License-Identifier: Apache-2.0
#include "doctor/units.h"

#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace nereid::doctor {

std::string BytesText(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // A value that would be printed as 1024 belongs to the next unit.
  for (; value >= 1023.5 && bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 99.95 ? 0 : 1, kUnits[unit]);
}

}  // namespace nereid::doctor
