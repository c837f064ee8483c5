// SPDX-License-Identifier: Apache-2.0
// Base64 as clients of the HTTP protocol send file contents and handles.
#pragma once

#include <string>
#include <string_view>

namespace nereid::common {

// Decodes `text` as leniently as the decoder that clients were written against: characters outside
// the alphabet (line ends, padding) are skipped, and an incomplete last group yields the bytes it
// contains.
std::string DecodeBase64(std::string_view text);

}  // namespace nereid::common
