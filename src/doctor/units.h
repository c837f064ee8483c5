// SPDX-License-Identifier: Apache-2.0
// Bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace nereid::doctor {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// Returns "512 MiB", "3.2 GiB".
std::string BytesText(uint64_t bytes);

}  // namespace nereid::doctor
