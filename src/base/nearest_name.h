// SPDX-License-Identifier: Apache-2.0
// Suggestions for a name that does not exist, for messages that ask "did you mean ...?".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nereid::base {

// Returns the one of `names` that `name` was probably meant to be: one that differs in few
// characters, or of which one is a prefix of the other. Case is ignored. Empty when none is close.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> names);

// Returns "; did you mean 'x'?", or nothing if no name is close.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> names);

// Returns 'a', 'b' and 'c', for a message. A long list shows only the first ten names and how many
// more there are.
std::string QuotedList(std::span<const std::string_view> names);

}  // namespace nereid::base
