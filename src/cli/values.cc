// SPDX-License-Identifier: Apache-2.0
#include "cli/values.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nereid::cli {
namespace {

// A unit of time and its length in seconds.
struct Unit {
  std::string_view name;
  double seconds;
};

constexpr Unit kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"", 1}};

// Reads the number at the beginning of `text` and removes it from there.
template <typename T>
bool TakeNumber(std::string_view& text, T& value) {
  T read{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  value = read;
  return true;
}

template <typename T>
base::Status ReadInteger(std::string_view text, T& value) {
  T read{};
  if (!TakeNumber(text, read) || !text.empty()) {
    return base::InvalidArgumentError(fmt::format("expected an integer from {} to {}",
                                                  std::numeric_limits<T>::min(),
                                                  std::numeric_limits<T>::max()));
  }
  value = read;
  return base::OkStatus();
}

}  // namespace

base::Status ReadValue(std::string_view text, std::string& value) {
  value = text;
  return base::OkStatus();
}

base::Status ReadValue(std::string_view text, int64_t& value) { return ReadInteger(text, value); }
base::Status ReadValue(std::string_view text, int& value) { return ReadInteger(text, value); }

base::Status ReadValue(std::string_view text, double& value) {
  double read = 0;
  if (!TakeNumber(text, read) || !text.empty() || !std::isfinite(read)) {
    return base::InvalidArgumentError("expected a number");
  }
  value = read;
  return base::OkStatus();
}

base::Status ReadValue(std::string_view text, Seconds& value) {
  double read = 0;
  if (TakeNumber(text, read) && std::isfinite(read) && read >= 0) {
    for (const Unit& unit : kUnits) {
      const double seconds = read * unit.seconds;
      if (text != unit.name || !std::isfinite(seconds)) continue;
      value = Seconds(seconds);
      return base::OkStatus();
    }
  }
  return base::InvalidArgumentError("expected a time such as 500ms, 2s, 1.5 (seconds), 5m or 1h");
}

base::Status ReadValue(std::string_view text, std::vector<std::string>& value) {
  value.emplace_back(text);
  return base::OkStatus();
}

std::string FormatValue(const std::string& value) { return value; }
std::string FormatValue(int64_t value) { return fmt::format("{}", value); }
std::string FormatValue(int value) { return fmt::format("{}", value); }
std::string FormatValue(double value) { return fmt::format("{}", value); }

std::string FormatValue(Seconds value) {
  if (value.count() == 0) return "0s";
  for (const Unit& unit : {kUnits[4], kUnits[3], kUnits[2], kUnits[1]}) {
    if (value.count() >= unit.seconds) {
      return fmt::format("{:.6g}{}", value.count() / unit.seconds, unit.name);
    }
  }
  return fmt::format("{:.6g}us", value.count() * 1e6);
}

std::string FormatValue(const std::vector<std::string>& value) {
  return fmt::format("{}", fmt::join(value, ", "));
}

}  // namespace nereid::cli
