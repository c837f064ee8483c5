// SPDX-License-Identifier: Apache-2.0
// The few cryptographic functions that credentials need, on OpenSSL.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::access {

using Digest = std::array<uint8_t, 32>;

// SHA-256.
Digest HashOf(std::string_view bytes);
// Compares in a time that depends only on the sizes.
bool IsSame(std::string_view a, std::string_view b);

// Returns 64 lower-case hexadecimal digits.
std::string ToHex(const Digest& digest);
// Nothing unless `text` is 64 hexadecimal digits.
std::optional<Digest> DigestFromHex(std::string_view text);

// Returns a new API key: "nrd_" and 32 random bytes in base64url. Because nobody can guess 256
// random bits, one SHA-256 protects it as well as a slow function would protect a password.
base::Result<std::string> MakeKey();

}  // namespace nereid::access
