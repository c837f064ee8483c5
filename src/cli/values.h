// SPDX-License-Identifier: Apache-2.0
// The types that values of options have: how each is read from text, and written as a default.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nereid::cli {

using Seconds = std::chrono::duration<double>;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Each reads `text` into `value`, which stays as it was if the text is refused. An error says what
// was expected; the caller names the option.
base::Status ReadValue(std::string_view text, std::string& value);
base::Status ReadValue(std::string_view text, int64_t& value);
base::Status ReadValue(std::string_view text, int& value);
// Not infinity and not NaN.
base::Status ReadValue(std::string_view text, double& value);
// A number with one of the units us, ms, s, m and h; seconds without one. Not negative.
base::Status ReadValue(std::string_view text, Seconds& value);
// Appends to the list, for options that may be repeated.
base::Status ReadValue(std::string_view text, std::vector<std::string>& value);

template <typename T>
base::Status ReadValue(std::string_view text, std::optional<T>& value) {
  T read{};
  NEREID_RETURN_IF_ERROR(ReadValue(text, read));
  value = std::move(read);
  return base::OkStatus();
}

// Each returns the text that help shows as the default; empty if there is none to show.
std::string FormatValue(const std::string& value);
std::string FormatValue(int64_t value);
std::string FormatValue(int value);
std::string FormatValue(double value);
std::string FormatValue(Seconds value);
std::string FormatValue(const std::vector<std::string>& value);

template <typename T>
std::string FormatValue(const std::optional<T>& value) {
  return value ? FormatValue(*value) : std::string();
}

}  // namespace nereid::cli
