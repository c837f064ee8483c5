// SPDX-License-Identifier: Apache-2.0
// A named value that accompanies a request or a response; the server does not interpret it.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

namespace nereid::core {

// A named value of a request or of a response.
struct Parameter {
  std::string_view name;  // in the arena of its request or response
  std::variant<std::string_view, int64_t, bool, double> value;
};

}  // namespace nereid::core
