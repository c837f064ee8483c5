// SPDX-License-Identifier: Apache-2.0
// Errors as values: Status (success, or a code plus a message) and Result<T> (a T or a Status). A
// message tells users what was wrong with their input: model, field, value, limit. Context is added
// by prefix on the way up; the frontend that sends the error logs it once.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace nereid::base {

// Up to kCancelled, the values are those of TRITONSERVER_Error_Code. The C API has none for the
// others and reports them as unavailable.
enum class StatusCode {
  kUnknown = 0,
  kInternal = 1,
  kNotFound = 2,
  kInvalidArgument = 3,
  kUnavailable = 4,
  kUnsupported = 5,
  kAlreadyExists = 6,
  kCancelled = 7,
  kDeadlineExceeded = 8,   // the client's time for the request is over
  kResourceExhausted = 9,  // the client has used what it may use for now
};

// Returns the names that logs and the C API print: "Internal", "Invalid argument", ...
std::string_view StatusCodeName(StatusCode code);

// Success is one null pointer; a failure owns its code and text. Immutable once made.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : Status(Failure{.code = code, .message = std::move(message)}) {}

  bool ok() const { return failure_ == nullptr; }
  // REQUIRES: !ok().
  StatusCode code() const {
    NEREID_CHECK(failure_ != nullptr);
    return failure_->code;
  }
  // The message, empty on success.
  std::string_view message() const { return ok() ? std::string_view() : failure_->message; }
  // Returns "OK" or "<code name>: <message>".
  std::string ToString() const;
  // Returns the same with `prefix` put before the message; success stays success.
  Status WithPrefix(std::string_view prefix) const;
  // When it makes sense to try again; 0: nobody knows.
  std::chrono::nanoseconds retry_after() const {
    return ok() ? std::chrono::nanoseconds(0) : failure_->retry_after;
  }
  // Returns the same error, which says when it makes sense to try again. REQUIRES: !ok().
  Status WithRetryAfter(std::chrono::nanoseconds after) const;

 private:
  // The content of a status that is not OK.
  struct Failure {
    StatusCode code;
    std::string message;
    std::chrono::nanoseconds retry_after{0};
  };
  explicit Status(Failure failure)
      : failure_(std::make_shared<const Failure>(std::move(failure))) {}

  std::shared_ptr<const Failure> failure_;  // shared by copies of this status
};

inline Status OkStatus() { return {}; }
inline Status InternalError(std::string m) { return {StatusCode::kInternal, std::move(m)}; }
inline Status NotFoundError(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
inline Status InvalidArgumentError(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
inline Status UnavailableError(std::string m) { return {StatusCode::kUnavailable, std::move(m)}; }
inline Status UnsupportedError(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
inline Status AlreadyExistsError(std::string m) {
  return {StatusCode::kAlreadyExists, std::move(m)};
}
inline Status CancelledError(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }
inline Status DeadlineExceededError(std::string m) {
  return {StatusCode::kDeadlineExceeded, std::move(m)};
}
inline Status ResourceExhaustedError(std::string m) {
  return {StatusCode::kResourceExhausted, std::move(m)};
}

// A T or the error that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
    NEREID_CHECK(!std::get<1>(state_).ok());
  }

  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

  // REQUIRES for all overloads: ok().
  T& value() & {
    NEREID_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    NEREID_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    NEREID_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace nereid::base

// Returns from the enclosing function with the status of `expr` unless it is success.
#define NEREID_RETURN_IF_ERROR(expr)                                          \
  do {                                                                        \
    if (::nereid::base::Status nereid_status = (expr); !nereid_status.ok()) { \
      return nereid_status;                                                   \
    }                                                                         \
  } while (false)

#define NEREID_CONCAT_INNER(a, b) a##b
#define NEREID_CONCAT(a, b) NEREID_CONCAT_INNER(a, b)
// Declares or assigns `lhs` from a Result, or returns its status.
#define NEREID_ASSIGN_OR_RETURN(lhs, expr)                   \
  auto NEREID_CONCAT(nereid_result_, __LINE__) = (expr);     \
  if (!NEREID_CONCAT(nereid_result_, __LINE__).ok()) {       \
    return NEREID_CONCAT(nereid_result_, __LINE__).status(); \
  }                                                          \
  lhs = std::move(NEREID_CONCAT(nereid_result_, __LINE__)).value()
