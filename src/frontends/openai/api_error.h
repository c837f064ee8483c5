// SPDX-License-Identifier: Apache-2.0
// An error as clients of this API see it. Private to this module.
#pragma once

#include <string_view>
#include <utility>

#include "base/status.h"
#include "http1/http_server.h"

namespace nereid::openai {

// Codes that clients know. Others have none.
inline constexpr std::string_view kModelNotFound = "model_not_found";

// An error, or none. A status without a field converts to it.
class [[nodiscard]] ApiError {
 public:
  ApiError() = default;
  ApiError(base::Status status) : status_(std::move(status)) {}
  // `param` is the field of the request that is wrong, `code` one of the above; both are constants
  // or live as long as the error.
  ApiError(base::Status status, std::string_view param, std::string_view code = {})
      : status_(std::move(status)), param_(param), code_(code) {}

  bool ok() const { return status_.ok(); }
  const base::Status& status() const { return status_; }
  std::string_view param() const { return param_; }
  std::string_view code() const { return code_; }

 private:
  base::Status status_;
  std::string_view param_;
  std::string_view code_;
};

// The error of a field with a value that cannot be.
ApiError FieldError(std::string_view param, std::string message);

// Replies with the error.
void RespondError(http1::HttpExchangePtr exchange, const ApiError& error,
                  std::string_view headers = {});

// Returns the error's JSON, for an event of a stream.
std::string ErrorJson(const ApiError& error);

}  // namespace nereid::openai

// Returns from the enclosing function with the error of `expr`, unless there is none.
#define NEREID_RETURN_IF_API_ERROR(expr)                                        \
  do {                                                                          \
    if (::nereid::openai::ApiError nereid_error = (expr); !nereid_error.ok()) { \
      return nereid_error;                                                      \
    }                                                                           \
  } while (false)
