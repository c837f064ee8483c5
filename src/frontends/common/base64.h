// SPDX-License-Identifier: Apache-2.0
// Base64 as clients of the HTTP protocol send file contents and handles, and as they get vectors.
#pragma once

#include <string>
#include <string_view>

namespace nereid::common {

// Decodes `text` as leniently as the decoder that clients were written against: characters outside
// the alphabet (line ends, padding) are skipped, and an incomplete last group yields the bytes it
// contains.
std::string DecodeBase64(std::string_view text);

// Appends `bytes` in the usual alphabet, with padding.
void AppendBase64(std::string& out, std::string_view bytes);

}  // namespace nereid::common
