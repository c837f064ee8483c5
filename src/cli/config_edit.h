// SPDX-License-Identifier: Apache-2.0
// Changes single values in the text of a config.pbtxt and leaves everything else, comments among
// it, as it is.
#pragma once

#include <string>
#include <string_view>

namespace nereid::cli {

// Sets one field of the message `parent` ("dynamic_batching", "instance_group[0]"; empty: of the
// configuration itself), which is at `parent`.`field` then. If the message is not in the text,
// `block` is appended, which has it with the field: "dynamic_batching {\n  ...\n}\n". `value` is
// written as it is.
std::string SetConfigField(std::string text, std::string_view parent, std::string_view field,
                           std::string_view value, std::string_view block);

// Sets the text of an entry of `parameters`.
std::string SetConfigParameter(std::string text, std::string_view key, std::string_view value);

// Returns what differs between two texts as a patch for `patch -p1`, with three lines around each
// change; empty if nothing does. `path` is that of the file, without a slash in front.
std::string UnifiedDiff(std::string_view before, std::string_view after, std::string_view path);

}  // namespace nereid::cli
