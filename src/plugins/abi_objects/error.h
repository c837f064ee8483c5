// SPDX-License-Identifier: Apache-2.0
// Conversion of errors: base::Status inside, TRITONSERVER_Error in the C API. Success is a null
// pointer in the C API and allocates nothing.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/status.h"
#include "triton/core/tritonserver.h"

// An error of the C API. Immutable.
struct TRITONSERVER_Error {
  nereid::base::StatusCode code;
  std::string message;
};

namespace nereid::abi_objects {

TRITONSERVER_Error_Code ToErrorCode(base::StatusCode code);
// Unknown numbers become kUnknown.
base::StatusCode ToStatusCode(TRITONSERVER_Error_Code code);

// Makes an error that the caller of the C API owns; null for success.
TRITONSERVER_Error* NewError(const base::Status& status);
// Returns the content of `error`; success for null. Does not take ownership.
base::Status ToStatus(const TRITONSERVER_Error* error);
// Like ToStatus, but takes ownership of the error and deletes it.
base::Status TakeStatus(TRITONSERVER_Error* error);

// Runs the body of a C API function: its Status becomes the function's result, and no exception
// crosses the boundary.
template <typename Body>
TRITONSERVER_Error* RunApiCall(Body&& body) noexcept {
  try {
    const base::Status status = body();
    return status.ok() ? nullptr : NewError(status);
  } catch (const std::bad_alloc&) {
    return NewError(base::UnavailableError("out of memory"));
  } catch (const std::exception& exception) {
    return NewError(base::InternalError(exception.what()));
  } catch (...) {
    return NewError(base::InternalError("unexpected exception"));
  }
}

// Calls a function of a plug-in and turns an exception that escapes from it into an error.
template <typename Function, typename... Args>
base::Status CallPlugin(Function* function, Args... args) noexcept {
  try {
    TRITONSERVER_Error* const error = function(args...);
    return error == nullptr ? base::OkStatus() : TakeStatus(error);
  } catch (const std::exception& exception) {
    return base::InternalError(std::string("exception from plug-in: ") + exception.what());
  } catch (...) {
    return base::InternalError("exception from plug-in");
  }
}

}  // namespace nereid::abi_objects
