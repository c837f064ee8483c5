// SPDX-License-Identifier: Apache-2.0
// Finds words and numbers in lines of generated C++.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace nereid::pytorch {

// The rest of `text` behind `prefix`; nothing if it does not begin so.
std::optional<std::string_view> After(std::string_view text, std::string_view prefix);

// What is between the first `open` and the next `close` behind it.
std::optional<std::string_view> Between(std::string_view text, std::string_view open,
                                        std::string_view close);

// A number as C++ spells it: "64", "4L".
std::optional<int64_t> Number(std::string_view text);

bool IsName(std::string_view text);

std::string_view Trimmed(std::string_view text);

// The elements of "s77, 4L"; none of "" and one of "3L, ".
std::vector<std::string_view> Split(std::string_view list);

}  // namespace nereid::pytorch
