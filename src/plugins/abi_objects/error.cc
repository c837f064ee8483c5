// SPDX-License-Identifier: Apache-2.0
#include "abi_objects/error.h"

#include <memory>

namespace nereid::abi_objects {

TRITONSERVER_Error_Code ToErrorCode(base::StatusCode code) {
  switch (code) {
    case base::StatusCode::kUnknown:
      return TRITONSERVER_ERROR_UNKNOWN;
    case base::StatusCode::kInternal:
      return TRITONSERVER_ERROR_INTERNAL;
    case base::StatusCode::kNotFound:
      return TRITONSERVER_ERROR_NOT_FOUND;
    case base::StatusCode::kInvalidArgument:
      return TRITONSERVER_ERROR_INVALID_ARG;
    case base::StatusCode::kUnavailable:
    case base::StatusCode::kDeadlineExceeded:
    case base::StatusCode::kResourceExhausted:
      return TRITONSERVER_ERROR_UNAVAILABLE;
    case base::StatusCode::kUnsupported:
      return TRITONSERVER_ERROR_UNSUPPORTED;
    case base::StatusCode::kAlreadyExists:
      return TRITONSERVER_ERROR_ALREADY_EXISTS;
    case base::StatusCode::kCancelled:
      return TRITONSERVER_ERROR_CANCELLED;
  }
  return TRITONSERVER_ERROR_UNKNOWN;
}

base::StatusCode ToStatusCode(TRITONSERVER_Error_Code code) {
  switch (code) {
    case TRITONSERVER_ERROR_UNKNOWN:
      return base::StatusCode::kUnknown;
    case TRITONSERVER_ERROR_INTERNAL:
      return base::StatusCode::kInternal;
    case TRITONSERVER_ERROR_NOT_FOUND:
      return base::StatusCode::kNotFound;
    case TRITONSERVER_ERROR_INVALID_ARG:
      return base::StatusCode::kInvalidArgument;
    case TRITONSERVER_ERROR_UNAVAILABLE:
      return base::StatusCode::kUnavailable;
    case TRITONSERVER_ERROR_UNSUPPORTED:
      return base::StatusCode::kUnsupported;
    case TRITONSERVER_ERROR_ALREADY_EXISTS:
      return base::StatusCode::kAlreadyExists;
    case TRITONSERVER_ERROR_CANCELLED:
      return base::StatusCode::kCancelled;
  }
  return base::StatusCode::kUnknown;
}

TRITONSERVER_Error* NewError(const base::Status& status) {
  if (status.ok()) return nullptr;
  return new TRITONSERVER_Error{status.code(), std::string(status.message())};
}

base::Status ToStatus(const TRITONSERVER_Error* error) {
  if (error == nullptr) return base::OkStatus();
  return {error->code, error->message};
}

base::Status TakeStatus(TRITONSERVER_Error* error) {
  const std::unique_ptr<TRITONSERVER_Error> owned(error);
  return ToStatus(error);
}

}  // namespace nereid::abi_objects

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* msg) {
  return new TRITONSERVER_Error{nereid::abi_objects::ToStatusCode(code), msg == nullptr ? "" : msg};
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }

TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) {
  return nereid::abi_objects::ToErrorCode(error->code);
}

const char* TRITONSERVER_ErrorCodeString(TRITONSERVER_Error* error) {
  // The names are literals and therefore zero-terminated.
  return nereid::base::StatusCodeName(error->code).data();
}

const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->message.c_str(); }

}  // extern "C"
#pragma GCC visibility pop
