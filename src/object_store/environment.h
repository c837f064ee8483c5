// SPDX-License-Identifier: Apache-2.0
// The variables in which users name accounts and keys, as a function so that tests choose their
// own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace nereid::object_store {

// Returns a variable of the environment, or nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The environment of this process.
Environment ProcessEnvironment();

// Returns the first of these variables that is set and not empty; empty if there is none.
std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names);

}  // namespace nereid::object_store
