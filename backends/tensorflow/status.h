// SPDX-License-Identifier: Apache-2.0
// The result of a call of TensorFlow.
#pragma once

#include <string>
#include <string_view>

#include "tensorflow_backend/library.h"

namespace nereid::tensorflow {

// Returns what TensorFlow says in one line, beginning with the name of its code, such as
// "INVALID_ARGUMENT: ".
std::string StatusText(int code, std::string_view message);

// A TF_Status. Thread-compatible; for calls one after the other.
class Status {
 public:
  explicit Status(const Library& library) : library_(library), status_(library.NewStatus()) {}
  ~Status() { library_.DeleteStatus(status_); }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  c::Status* get() const { return status_; }
  bool ok() const { return library_.GetCode(status_) == 0; }
  // What the last call says, after `before`.
  backend::Error ToError(std::string_view before = "") const {
    return ok() ? backend::Error()
                : backend::Error::Internal(backend::StrCat(
                      before, StatusText(library_.GetCode(status_), library_.Message(status_))));
  }

 private:
  const Library& library_;
  c::Status* const status_;
};

}  // namespace nereid::tensorflow
