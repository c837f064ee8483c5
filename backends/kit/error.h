// SPDX-License-Identifier: Apache-2.0
// Errors of a backend as values: Error owns one TRITONSERVER_Error (or none, which is success) and
// Result<T> is a T or an Error. An Error is passed to the server exactly once, at an entry point or
// with a response; otherwise it is passed by value and freed by its destructor.
//
//   Error Load(const std::string& path) {
//     if (path.empty()) return Error::InvalidArgument("no model file is named");
//     NEREID_KIT_TRY(TRITONBACKEND_ModelName(model, &name));      // a C call
//     NEREID_KIT_ASSIGN(const int count, ParseInt(text));         // a Result<int>
//     return {};
//   }
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "triton/core/tritonbackend.h"

namespace nereid::backend {

// Concatenates everything that std::to_string or std::string accepts; only for texts of errors and
// logs.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string text;
  const auto append = [&text](const auto& part) {
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>) {
      text += std::string_view(part);
    } else {
      text += std::to_string(part);
    }
  };
  (append(parts), ...);
  return text;
}

// Owns at most one TRITONSERVER_Error. Thread-compatible, movable, not copyable.
class [[nodiscard]] Error {
 public:
  // Success.
  Error() = default;
  // Takes ownership of the result of a C function; null is success.
  explicit Error(TRITONSERVER_Error* owned) : error_(owned) {}
  Error(TRITONSERVER_Error_Code code, const std::string& message)
      : error_(TRITONSERVER_ErrorNew(code, message.c_str())) {}
  Error(Error&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Error& operator=(Error&& other) noexcept {
    if (this != &other) {
      Reset(std::exchange(other.error_, nullptr));
    }
    return *this;
  }
  ~Error() { Reset(nullptr); }

  static Error Internal(const std::string& text) { return {TRITONSERVER_ERROR_INTERNAL, text}; }
  static Error InvalidArgument(const std::string& text) {
    return {TRITONSERVER_ERROR_INVALID_ARG, text};
  }
  static Error Unsupported(const std::string& text) {
    return {TRITONSERVER_ERROR_UNSUPPORTED, text};
  }
  static Error Unavailable(const std::string& text) {
    return {TRITONSERVER_ERROR_UNAVAILABLE, text};
  }

  bool ok() const { return error_ == nullptr; }
  // REQUIRES: !ok().
  TRITONSERVER_Error_Code code() const { return TRITONSERVER_ErrorCode(error_); }
  // The message, empty on success; valid as long as this object.
  const char* message() const { return ok() ? "" : TRITONSERVER_ErrorMessage(error_); }
  Error Copy() const { return ok() ? Error() : Error(code(), message()); }
  // Does not transfer ownership; null on success.
  TRITONSERVER_Error* get() const { return error_; }
  // Transfers the error to the caller, who now owns it; null on success.
  TRITONSERVER_Error* Release() { return std::exchange(error_, nullptr); }
  // Discards a failure that is expected and harmless.
  void Ignore() { Reset(nullptr); }

 private:
  void Reset(TRITONSERVER_Error* next) {
    if (error_ != nullptr) {
      TRITONSERVER_ErrorDelete(error_);
    }
    error_ = next;
  }

  TRITONSERVER_Error* error_ = nullptr;
};

// A T or the Error that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // REQUIRES: !error.ok().
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  // REQUIRES for all overloads: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  // Moves the error out of this object. REQUIRES: !ok().
  Error TakeError() { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

// Runs the body of an entry point, an Error() callable, and converts its result or exception for
// the C ABI, which no exception may cross.
template <typename Body>
TRITONSERVER_Error* EntryPoint(Body&& body) noexcept {
  try {
    return body().Release();
  } catch (const std::exception& e) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, e.what());
  } catch (...) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "unknown exception in backend");
  }
}

}  // namespace nereid::backend

// Marks the definition of an entry point, the only symbols that a backend with hidden visibility
// exports.
#define NEREID_KIT_EXPORT extern "C" __attribute__((visibility("default")))

// Returns from the enclosing function if a C call or a function that returns Error fails.
#define NEREID_KIT_TRY(expression)                                         \
  do {                                                                     \
    if (::nereid::backend::Error kit_error{expression}; !kit_error.ok()) { \
      return kit_error;                                                    \
    }                                                                      \
  } while (false)

// Declares `declaration` with the value of a Result, or returns its Error.
#define NEREID_KIT_CONCAT_INNER(a, b) a##b
#define NEREID_KIT_CONCAT(a, b) NEREID_KIT_CONCAT_INNER(a, b)
#define NEREID_KIT_ASSIGN(declaration, expression)               \
  auto NEREID_KIT_CONCAT(kit_result_, __LINE__) = (expression);  \
  if (!NEREID_KIT_CONCAT(kit_result_, __LINE__).ok()) {          \
    return NEREID_KIT_CONCAT(kit_result_, __LINE__).TakeError(); \
  }                                                              \
  declaration = std::move(NEREID_KIT_CONCAT(kit_result_, __LINE__)).value()
