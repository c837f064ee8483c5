// SPDX-License-Identifier: Apache-2.0
// Finds every error in a config.pbtxt that protobuf's parser has refused. That parser stops at the
// first one; this reader checks the text against the message's description and continues after
// each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nereid::config {

// A mistake in a config.pbtxt: its position and an explanation.
struct TextFault {
  int line = 0;    // from 1
  int column = 0;  // from 1
  std::string field;
  std::string found;
  std::string expected;
};

// Returns at most 100 faults, in the order of the text. An empty list does not mean that the text
// is valid.
std::vector<TextFault> DiagnoseModelConfigText(std::string_view text);

}  // namespace nereid::config
