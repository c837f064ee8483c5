// SPDX-License-Identifier: Apache-2.0
// Lets a frontend cancel a request that other threads may be completing and releasing at the same
// moment. Cancelling needs a reference, because the request's memory is freed with its last
// reference; but a request that everybody else has dropped, perhaps without a response, must not
// wait for the one that might cancel it. So a slot refers to the request without keeping it, and
// exactly one thread takes it out: the one that cancels, the one that sees the request end, or the
// one that drops the last reference.
#pragma once

#include <atomic>

#include "core/request.h"

namespace nereid::core {

// Thread-safe. Belongs to the request's sink, which outlives every reference: the end of the
// request closes it.
class CancelHandle {
 public:
  CancelHandle() = default;
  CancelHandle(const CancelHandle&) = delete;
  CancelHandle& operator=(const CancelHandle&) = delete;

  // Makes `request` cancellable. REQUIRES: the handle is closed; the caller has not passed the
  // request on yet, unless it has had this handle before.
  //
  // A thread that calls Take before this gets nothing. Where one may, it first sets an atomic flag,
  // and the caller of Open reads that flag afterwards and cancels the request itself.
  void Open(Request& request) {
    if (request.handle_ != this) request.handle_ = this;
    request.references_.fetch_add(Request::kHandle);
    slot_ = &request;
  }

  // Takes a reference in order to cancel: if (const auto request = handle.Take()) ... Empty if
  // the request has ended or another thread took it first, so each request is cancelled at most
  // once. Dropping the reference may destroy the request, its sink and this handle.
  RequestRef Take() {
    Request* const request = TakeOut();
    if (request == nullptr) return {};
    request->references_.fetch_add(1 - Request::kHandle);  // modulo its size
    return RequestRef::Adopt(request);
  }

  // Called when the request has ended. May destroy the request, its sink and this handle, like
  // Take.
  void Close() {
    if (Request* const request = TakeOut(); request != nullptr) request->DropHandle();
  }

 private:
  // In nearly all calls after the first, the slot is empty.
  Request* TakeOut() { return slot_.load() == nullptr ? nullptr : slot_.exchange(nullptr); }

  std::atomic<Request*> slot_{nullptr};
};

}  // namespace nereid::core
