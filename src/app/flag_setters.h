// SPDX-License-Identifier: Apache-2.0
// Functions for the table of flags that apply the common kinds of values. `Member` takes the
// options and returns a reference to a field.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "app/flag_values.h"
#include "app/options.h"
#include "base/status.h"

namespace nereid::app {

inline constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();

// For flags that are accepted without effect.
inline base::Status Ignore(std::string_view, Options&) { return base::OkStatus(); }

inline base::Status IgnoreInteger(std::string_view value, Options&) {
  return ReadInteger(value, std::numeric_limits<int64_t>::min()).status();
}

template <auto Member>
base::Status SetBool(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(Member(options), ReadBool(value));
  return base::OkStatus();
}

template <auto Member, int64_t kMin, int64_t kMax>
base::Status SetInteger(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const int64_t number, ReadInteger(value, kMin, kMax));
  auto& field = Member(options);
  field = static_cast<std::remove_reference_t<decltype(field)>>(number);
  return base::OkStatus();
}

template <auto Member>
base::Status SetString(std::string_view value, Options& options) {
  Member(options) = std::string(value);
  return base::OkStatus();
}

template <auto Member>
base::Status SetMilliseconds(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const int64_t number, ReadInteger(value, 0, kIntMax));
  Member(options) = std::chrono::milliseconds(number);
  return base::OkStatus();
}

template <auto Member, int64_t kMin = 0>
base::Status SetSeconds(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const int64_t number, ReadInteger(value, kMin, kIntMax));
  Member(options) = std::chrono::seconds(number);
  return base::OkStatus();
}

// The range of the port is checked later, if the service is enabled.
template <auto Member>
base::Status SetPort(std::string_view value, Options& options) {
  const auto number = ReadInteger(value, -kIntMax, kIntMax);
  if (!number.ok()) return base::InvalidArgumentError(std::string(kExpectedPort));
  Member(options) = static_cast<int32_t>(*number);
  return base::OkStatus();
}

}  // namespace nereid::app
