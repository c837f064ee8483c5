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
    case StatusCode::kDeadlineExceeded:
      return "Deadline exceeded";
    case StatusCode::kResourceExhausted:
      return "Resource exhausted";
  }
  return "<invalid code>";
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return std::string(StatusCodeName(code())) + ": " + std::string(message());
}

Status Status::WithPrefix(std::string_view prefix) const {
  if (ok()) return *this;
  Failure prefixed = *failure_;
  prefixed.message.insert(0, prefix);
  return Status(std::move(prefixed));
}

Status Status::WithRetryAfter(std::chrono::nanoseconds after) const {
  NEREID_CHECK(!ok());
  Failure failure = *failure_;
  failure.retry_after = after;
  return Status(std::move(failure));
}

}  // namespace nereid::base
