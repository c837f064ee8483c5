// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/status.h"

#include <array>

namespace nereid::tensorflow {

std::string StatusText(int code, std::string_view message) {
  constexpr std::array<std::string_view, 17> kNames = {"OK",
                                                       "CANCELLED",
                                                       "UNKNOWN",
                                                       "INVALID_ARGUMENT",
                                                       "DEADLINE_EXCEEDED",
                                                       "NOT_FOUND",
                                                       "ALREADY_EXISTS",
                                                       "PERMISSION_DENIED",
                                                       "RESOURCE_EXHAUSTED",
                                                       "FAILED_PRECONDITION",
                                                       "ABORTED",
                                                       "OUT_OF_RANGE",
                                                       "UNIMPLEMENTED",
                                                       "INTERNAL",
                                                       "UNAVAILABLE",
                                                       "DATA_LOSS",
                                                       "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  std::string text(index < kNames.size() ? kNames[index] : kNames[2]);
  text += ": ";
  bool is_space = true;
  for (const char c : message) {
    const bool was_space = is_space;
    is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_space) {
      text.push_back(c);
    } else if (!was_space) {
      text.push_back(' ');
    }
  }
  return text;
}

}  // namespace nereid::tensorflow
