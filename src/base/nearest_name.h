// SPDX-License-Identifier: Apache-2.0
// What somebody probably meant who wrote a name that does not exist, for messages that ask "did you
// mean ...?".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nereid::base {

// The one of `names` that `name` was probably meant to be: a spelling mistake away from it, or a
// part of it. Capital letters count as small ones. Empty when none is close.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> names);

// "; did you mean 'x'?" or, where no name is close, nothing.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> names);

// 'a', 'b' and 'c', for a message. Of many names only the first ten are told, and how many more
// there are.
std::string QuotedList(std::span<const std::string_view> names);

}  // namespace nereid::base
