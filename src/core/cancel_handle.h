// SPDX-License-Identifier: Apache-2.0
// Lets a frontend cancel a request that other threads may be completing and releasing at the same
// moment. Cancelling needs a reference, because the request's memory is freed with its last
// reference, and a reference that is held for too long keeps the memory of a completed request. So
// a slot holds one reference, which exactly one thread takes out: the one that cancels, or the one
// that sees the request end.
#pragma once

#include <atomic>

#include "core/request.h"

namespace nereid::core {

// Thread-safe. Must be closed before it is destroyed. If the owner is the request's sink, the end
// of the request does that, because the sink outlives every reference.
class CancelHandle {
 public:
  CancelHandle() = default;
  CancelHandle(const CancelHandle&) = delete;
  CancelHandle& operator=(const CancelHandle&) = delete;

  // Makes `request` cancellable. REQUIRES: the handle is closed, and the caller has not passed the
  // request on yet. Who cancelled before that has found the slot empty: if another thread may have,
  // it says so in an atomic variable before it calls Take, and the caller reads that after this.
  void Open(Request& request) { slot_ = RequestRef(request).Release(); }

  // Takes the reference in order to cancel: if (const auto request = handle.Take()) ... Empty if
  // the request has ended or another thread took it first, so each request is cancelled at most
  // once. Dropping the reference may destroy the request, its sink and this handle.
  RequestRef Take() {
    // In nearly all calls after the first, the slot is empty.
    if (slot_.load() == nullptr) return {};
    return RequestRef::Adopt(slot_.exchange(nullptr));
  }

  // Called when the request has ended. May destroy the request, its sink and this handle, like
  // Take.
  void Close() { Take().Reset(); }

 private:
  std::atomic<Request*> slot_{nullptr};
};

}  // namespace nereid::core
