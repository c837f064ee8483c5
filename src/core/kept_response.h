// SPDX-License-Identifier: Apache-2.0
// Lets a sink put aside a response that is not the last one, until the next call of Send tells what
// to make of it. A response keeps its request; but a request that everybody else has dropped has
// no last response to come, and must not wait for the one that was put aside. So that one counts
// apart, and the sink hears when nothing else is left (ResponseSink::OnAbandoned).
#pragma once

#include <utility>

#include "core/request.h"
#include "core/response.h"

namespace nereid::core {

// Confined to the sender of the request's responses, and to OnAbandoned. Belongs to the request's
// sink, and is empty when that is destroyed.
class KeptResponse {
 public:
  KeptResponse() = default;
  KeptResponse(const KeptResponse&) = delete;
  KeptResponse& operator=(const KeptResponse&) = delete;

  explicit operator bool() const { return response_ != nullptr; }

  // REQUIRES: none is kept. May call OnAbandoned and destroy the request, its sink and this.
  void Keep(ResponsePtr response) {
    response_ = std::move(response);
    Request& request = response_->request();
    request.references_.fetch_add(Request::kKept);
    request.Unreference();
  }

  // Returns the response, which keeps its request again; null if none is kept. REQUIRES: the caller
  // keeps the request, or is OnAbandoned. Dropping the response may destroy the request, its sink
  // and this.
  ResponsePtr TakeBack() {
    if (response_ != nullptr) {
      response_->request().references_.fetch_add(1 - Request::kKept);  // modulo its size
    }
    return std::move(response_);
  }

 private:
  ResponsePtr response_;
};

}  // namespace nereid::core
