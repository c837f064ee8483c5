// SPDX-License-Identifier: Apache-2.0
// Finds every fault in a config.pbtxt that protobuf's parser has refused. That parser stops at the
// first one; this reader checks the text against the message's description and goes on behind each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nereid::config {

// A mistake in a config.pbtxt: where it is and what is wrong.
struct TextFault {
  int line = 0;    // from 1
  int column = 0;  // from 1
  std::string field;
  std::string found;
  std::string expected;
};

// At most 100 faults, in the order of the text. Empty does not mean that the text is valid.
std::vector<TextFault> DiagnoseModelConfigText(std::string_view text);

}  // namespace nereid::config
