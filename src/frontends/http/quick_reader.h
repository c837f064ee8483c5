// SPDX-License-Identifier: Apache-2.0
// The quick reader of infer heads: one pass with simdjson over what clients usually send. It
// answers "taken" or "not for me" and leaves errors, and every rarity, to the exact reader. Private
// to this module: simdjson's header is not seen outside the two files that use it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "core/request.h"
#include "http/infer_request.h"

namespace nereid::http {

// Thread-compatible.
class QuickReader {
 public:
  explicit QuickReader(size_t max_input_bytes) : max_input_bytes_(max_input_bytes) {}

  // `json` is followed by at least 64 readable bytes. False: nothing is decided and `request` and
  // `answer` may be half filled.
  bool Read(std::string_view json, std::string_view binary, core::Request& request,
            AnswerOptions& answer);

 private:
  using Value = simdjson::ondemand::value;
  using Object = simdjson::ondemand::object;
  using Array = simdjson::ondemand::array;

  struct Region;
  struct Input;

  bool ReadDocument(simdjson::ondemand::parser& parser, std::string_view json);
  bool ReadMember(std::string_view key, Value value);
  bool ReadParameters(Object parameters);
  bool ReadParameter(std::string_view key, Value value);
  bool ReadInput(Object object);
  bool ReadInputMember(std::string_view key, Value value, Input& input);
  bool ReadInputParameters(Object parameters, Input& input);
  bool ReadData(Array data, Input& input);
  template <typename Json, typename Element>
  bool ReadNumbers(Array data, Input& input);
  template <typename Json, typename Element>
  bool ReadElements(Array array, std::span<Element> out, size_t& done, int depth);
  bool ReadBytes(Array data, Input& input);
  bool ReadStrings(Array array, int depth);
  bool ReadOutput(Object object);
  bool ReadOutputParameters(Object parameters, OutputOptions& options, Region& region);
  bool ReadRegionParameter(std::string_view key, Value value, Region& region);

  // Checks a value that nobody wants.
  bool Skip(Value value, int depth);
  // The key of a member; nothing when it has escapes.
  std::optional<std::string_view> PlainKey(simdjson::ondemand::field& field) const;
  // The text of a string value: a view of the head, or of the parser's memory if it has escapes.
  static std::optional<std::string_view> Text(Value& value);
  // The same, only without escapes: a view that lives as long as the body.
  static std::optional<std::string_view> PlainText(Value& value);

  const size_t max_input_bytes_;
  simdjson::ondemand::parser parser_;
  std::string strings_;  // BYTES elements of one input while they are gathered

  // Of the request being read.
  std::string_view json_;
  std::string_view binary_;  // what no input has taken yet
  core::Request* request_ = nullptr;
  AnswerOptions* answer_ = nullptr;
  unsigned seen_ = 0;
};

}  // namespace nereid::http
