// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdio>
#include <cstdlib>

namespace nereid::base {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line, condition);
  std::abort();
}

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kUnknown:
      return "Unknown";
    case StatusCode::kInternal:
      return "Internal";
    case StatusCode::kNotFound:
      return "Not found";
    case StatusCode::kInvalidArgument:
      return "Invalid argument";
    case StatusCode::kUnavailable:
      return "Unavailable";
    case StatusCode::kUnsupported:
      return "Unsupported";
    case StatusCode::kAlreadyExists:
      return "Already exists";
    case StatusCode::kCancelled:
      return "Cancelled";
  }
  return "<invalid code>";
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return std::string(StatusCodeName(code())) + ": " + std::string(message());
}

Status Status::WithPrefix(std::string_view prefix) const {
  if (ok()) return *this;
  return {code(), std::string(prefix) + std::string(message())};
}

}  // namespace nereid::base
