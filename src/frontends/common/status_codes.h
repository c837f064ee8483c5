// SPDX-License-Identifier: Apache-2.0
// Our error codes on the wire. Clients decide by these numbers whether to retry, so both tables are
// Triton's as far as Triton has the code.
#pragma once

#include "base/status.h"

namespace nereid::common {

// Returns the HTTP status of an error.
constexpr int HttpStatus(base::StatusCode code) {
  switch (code) {
    case base::StatusCode::kInternal:
      return 500;
    case base::StatusCode::kNotFound:
      return 404;
    case base::StatusCode::kUnavailable:
      return 503;
    case base::StatusCode::kUnsupported:
      return 501;
    case base::StatusCode::kDeadlineExceeded:
      return 504;
    case base::StatusCode::kResourceExhausted:
      return 429;
    case base::StatusCode::kUnknown:
    case base::StatusCode::kInvalidArgument:
    case base::StatusCode::kAlreadyExists:
    case base::StatusCode::kCancelled:
      break;
  }
  return 400;
}

// Returns the number of the gRPC status code of an error.
constexpr int GrpcStatus(base::StatusCode code) {
  switch (code) {
    case base::StatusCode::kInternal:
      return 13;
    case base::StatusCode::kNotFound:
      return 5;
    case base::StatusCode::kInvalidArgument:
      return 3;
    case base::StatusCode::kUnavailable:
      return 14;
    case base::StatusCode::kUnsupported:
      return 12;
    case base::StatusCode::kAlreadyExists:
      return 6;
    case base::StatusCode::kCancelled:
      return 1;
    case base::StatusCode::kDeadlineExceeded:
      return 4;
    case base::StatusCode::kResourceExhausted:
      return 8;
    case base::StatusCode::kUnknown:
      break;
  }
  return 2;
}

}  // namespace nereid::common
