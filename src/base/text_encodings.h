// SPDX-License-Identifier: Apache-2.0
// Bytes as text: hexadecimal digits, and the base64 of tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nereid::base {

// Returns two lower-case digits for each byte.
std::string ToHex(std::string_view bytes);

// Base64 with the alphabet of URLs, without padding, as in tokens (RFC 7515). Decoding accepts one
// spelling of the bytes only.
std::string EncodeBase64Url(std::string_view bytes);
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace nereid::base
