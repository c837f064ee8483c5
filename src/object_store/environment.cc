// SPDX-License-Identifier: Apache-2.0
#include "object_store/environment.h"

#include <cstdlib>

namespace nereid::object_store {

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    std::optional<std::string> value = environment(name);
    if (value && !value->empty()) return *std::move(value);
  }
  return {};
}

}  // namespace nereid::object_store
