// SPDX-License-Identifier: Apache-2.0
// Base64 as clients of the HTTP protocol send file contents and handles.
#pragma once

#include <string>
#include <string_view>

namespace nereid::common {

// The bytes that `text` encodes. As lenient as the decoder that clients were written against:
// characters outside the alphabet (line ends, padding) are skipped, an incomplete last group gives
// what it holds.
std::string DecodeBase64(std::string_view text);

}  // namespace nereid::common
