// SPDX-License-Identifier: Apache-2.0
// Errors on both sides of the C API: base::Status inside, TRITONSERVER_Error outside. Success is a
// null pointer there and allocates nothing.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/status.h"
#include "triton/core/tritonserver.h"

// Immutable.
struct TRITONSERVER_Error {
  nereid::base::StatusCode code;
  std::string message;
};

namespace nereid::abi_objects {

TRITONSERVER_Error_Code ToErrorCode(base::StatusCode code);
// A number that is no code of the C API counts as unknown.
base::StatusCode ToStatusCode(TRITONSERVER_Error_Code code);

// A new error for the caller of the C API to own; null for success.
TRITONSERVER_Error* NewError(const base::Status& status);
// What `error` says; success for null. The error stays whose it was.
base::Status ToStatus(const TRITONSERVER_Error* error);
// The same for an error that is ours from now on; deletes it.
base::Status TakeStatus(TRITONSERVER_Error* error);

// Runs the body of a C API function: its Status becomes the function's answer, and no exception
// crosses the boundary.
template <typename Body>
TRITONSERVER_Error* Answer(Body&& body) noexcept {
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

// Calls a function of a plug-in; an exception that escapes from it becomes an error.
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
