// SPDX-License-Identifier: Apache-2.0
// How users write the address of a Unix socket.
#pragma once

#include <string_view>

namespace nereid::base {

// Comes before the path of the socket, where the name of a host could be.
inline constexpr std::string_view kUnixPrefix = "unix:";

}  // namespace nereid::base
