// SPDX-License-Identifier: Apache-2.0
// Paths of object stores as users write them, in which repeated slashes count once.
#pragma once

#include <string>
#include <string_view>

namespace nereid::object_store {

// Removes the text before the next slash from the front of `path`, and the slashes, and returns it.
std::string_view TakeComponent(std::string_view& path);

// Returns the path as a key: without slashes at its ends, and with single ones in it.
std::string CleanKey(std::string_view path);

}  // namespace nereid::object_store
