// SPDX-License-Identifier: Apache-2.0
#include "http/header_length.h"

#include <charconv>
#include <limits>
#include <string>

namespace nereid::http {

base::Result<int32_t> ParseInferenceHeaderLength(std::string_view field) {
  std::string_view digits = field.substr(std::min(field.find_first_not_of(" \t"), field.size()));
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  int32_t length = 0;
  const std::errc error = std::from_chars(digits.data(), digits.data() + digits.size(), length).ec;
  if (error == std::errc()) return length;
  std::string text = "Unable to parse " + std::string(kInferenceHeaderLength);
  if (error == std::errc::result_out_of_range) {
    text += ", value is out of range [ " + std::to_string(std::numeric_limits<int32_t>::min()) +
            ", " + std::to_string(std::numeric_limits<int32_t>::max()) + " ]";
  }
  return base::InvalidArgumentError(text + ", got: " + std::string(field));
}

base::Result<size_t> InferenceHeaderLength(std::optional<std::string_view> field,
                                           uint64_t body_size) {
  if (!field) return static_cast<size_t>(body_size);
  NEREID_ASSIGN_OR_RETURN(const int32_t length, ParseInferenceHeaderLength(*field));
  if (length < 0 || static_cast<uint64_t>(length) > body_size) {
    return base::InvalidArgumentError("inference header size should be in range (0, " +
                                      std::to_string(body_size) + "), got: " + std::string(*field));
  }
  return static_cast<size_t>(length);
}

}  // namespace nereid::http
