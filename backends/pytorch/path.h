// SPDX-License-Identifier: Apache-2.0
// Names of tensors inside nested values: `x`, `x[0]`, `options[mask][1]`, and the forms with ARGS,
// KWARGS and RESULT that Triton has for compiled models.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::pytorch {

// The way from the arguments, or from the result, to one value: names, keys and positions.
using Path = std::vector<std::string>;

// Reads `name` as a path: the part before the first bracket (left out if empty) and the contents of
// each pair of brackets. Nothing if brackets are unbalanced or empty, or if text follows one.
std::optional<Path> ParsePath(std::string_view name);

// The number N of a name that ends in `__N`; nothing for other names.
std::optional<size_t> IndexOf(std::string_view name);

// A whole number in decimal digits that can be a position.
std::optional<size_t> ParseIndex(std::string_view text);

// The position of a name in a list; -1 if it is not there.
int FindName(const std::vector<std::string>& names, std::string_view name);

// "x[0][key]".
std::string ToString(const Path& path);

}  // namespace nereid::pytorch
