// SPDX-License-Identifier: Apache-2.0
// Reads a config.pbtxt along the message's description: finds every error in a text that protobuf's
// parser has refused, which stops at the first one, and the place of every field and value.
#pragma once

#include <map>
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
  std::string_view kind;  // see ConfigError
};

// Returns at most 100 faults, in the order of the text. An empty list does not mean that the text
// is valid.
std::vector<TextFault> DiagnoseModelConfigText(std::string_view text);

// The place of one field or value in a config.pbtxt.
struct TextPlace {
  int line = 0;    // from 1
  int column = 0;  // from 1
  bool is_scalar = false;
  std::string value;  // of a scalar, without quotes
};

// The places of the fields and values of a config.pbtxt by their paths, written as in ConfigError:
// "input[0].dims", "input[0].dims[1]", "parameters['KEY']", "dynamic_batching".
class TextPlaces {
 public:
  // Reads what can be read of a text with mistakes.
  static TextPlaces Read(std::string_view text);

  // Returns the place of `field`, or of the nearest field around it that is in the text; null if
  // there is none. Of a list, the element whose value is `found` is returned if there is one.
  const TextPlace* Find(std::string_view field, std::string_view found = {}) const;
  // All places by path. An entry of a map is there by its key and by its position.
  const std::map<std::string, TextPlace, std::less<>>& all() const { return places_; }
  // Whether the field itself is in the text.
  bool Has(std::string_view field) const { return places_.contains(field); }

 private:
  std::map<std::string, TextPlace, std::less<>> places_;
};

}  // namespace nereid::config
