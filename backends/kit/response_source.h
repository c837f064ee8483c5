// SPDX-License-Identifier: Apache-2.0
// Where the responses to a request come from: the request itself, or, once it may be released, a
// response factory.
#pragma once

#include "backend_kit/error.h"

namespace nereid::backend {

// A request and its response factory, which is made when it is first needed. Thread-compatible.
class ResponseSource {
 public:
  explicit ResponseSource(TRITONBACKEND_Request* request) : request_(request) {}
  ~ResponseSource() {
    if (factory_ != nullptr) Error(TRITONBACKEND_ResponseFactoryDelete(factory_)).Ignore();
  }
  ResponseSource(const ResponseSource&) = delete;
  ResponseSource& operator=(const ResponseSource&) = delete;

  // Null once it is released.
  TRITONBACKEND_Request* request() const { return request_; }
  // Called when the request is released (null), and if that fails.
  void set_request(TRITONBACKEND_Request* request) { request_ = request; }

  Result<TRITONBACKEND_Response*> NewResponse() {
    TRITONBACKEND_Response* response = nullptr;
    if (factory_ != nullptr) {
      NEREID_KIT_TRY(TRITONBACKEND_ResponseNewFromFactory(&response, factory_));
    } else if (request_ != nullptr) {
      NEREID_KIT_TRY(TRITONBACKEND_ResponseNew(&response, request_));
    } else {
      return Error::Internal("the request is gone");
    }
    return response;
  }
  // Makes the factory unless there is one: responses can then be made after the request was
  // released.
  Error EnsureFactory() {
    if (factory_ != nullptr) return {};
    if (request_ == nullptr) return Error::Internal("the request is gone");
    return Error(TRITONBACKEND_ResponseFactoryNew(&factory_, request_));
  }
  // Tells the server that no more responses follow. REQUIRES: EnsureFactory has succeeded.
  Error SendEnd() {
    return Error(
        TRITONBACKEND_ResponseFactorySendFlags(factory_, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
  }
  // Whether the client no longer wants responses; false once nothing is left to ask.
  Result<bool> IsCancelled() const {
    bool is_cancelled = false;
    if (factory_ != nullptr) {
      NEREID_KIT_TRY(TRITONBACKEND_ResponseFactoryIsCancelled(factory_, &is_cancelled));
    } else if (request_ != nullptr) {
      NEREID_KIT_TRY(TRITONBACKEND_RequestIsCancelled(request_, &is_cancelled));
    }
    return is_cancelled;
  }

 private:
  TRITONBACKEND_Request* request_;
  TRITONBACKEND_ResponseFactory* factory_ = nullptr;
};

}  // namespace nereid::backend
