// SPDX-License-Identifier: Apache-2.0
// Text from outside, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace nereid::cli {

// Returns the text as valid UTF-8: each byte that belongs to no character becomes U+FFFD.
std::string ValidUtf8(std::string_view text);

// Returns the text as valid UTF-8 without the control characters that could move the cursor or do
// worse: line ends and tabs become spaces, others U+FFFD.
std::string Printable(std::string_view text);

}  // namespace nereid::cli
