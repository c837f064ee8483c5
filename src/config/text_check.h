// SPDX-License-Identifier: Apache-2.0
// Finds strings that are not UTF-8. Text and JSON parsers accept them, but clients in other
// languages cannot read a message that contains one. Private to this module.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

namespace nereid::config {

bool IsUtf8(std::string_view text);

// Returns the path of the first string field in `message` that is not UTF-8; empty if there is
// none.
std::string FindBrokenText(const google::protobuf::Message& message);

}  // namespace nereid::config
