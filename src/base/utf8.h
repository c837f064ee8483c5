// SPDX-License-Identifier: Apache-2.0
// Whether text from outside is UTF-8.
#pragma once

#include <string_view>

namespace nereid::base {

// Whether `text` is a sequence of whole characters as RFC 3629 has them: no overlong forms, no
// surrogates, nothing above U+10FFFF. The empty text is.
bool IsValidUtf8(std::string_view text);

}  // namespace nereid::base
