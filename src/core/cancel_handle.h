// SPDX-License-Identifier: Apache-2.0
// How a frontend cancels a request that other threads may be answering and releasing at the same
// moment. To cancel needs a reference, because the request's memory goes when its last reference
// does, and a reference that is held for too long keeps the memory of a request that is over. So
// there is one reference in a slot, and whoever takes it out has it alone: the thread that cancels,
// or the one that sees the request end.
#pragma once

#include <atomic>

#include "core/request.h"

namespace nereid::core {

// Thread-safe. At the end of its owner's use it must be closed, which the end of the request sees
// to where the owner is the request's sink: that outlives every reference.
class CancelHandle {
 public:
  CancelHandle() = default;
  CancelHandle(const CancelHandle&) = delete;
  CancelHandle& operator=(const CancelHandle&) = delete;

  // `request` can be cancelled from now on. REQUIRES: it is closed, and the caller still has the
  // request, which means that it does so before it hands the request on.
  void Open(Request& request) { slot_ = RequestRef(request).Release(); }

  // The reference, for whoever wants to cancel: if (const auto request = handle.Take()) ... It is
  // empty when the request has ended or another thread was first, so each request is cancelled at
  // most once. The end of the reference may be the end of the request, of its sink and of this.
  RequestRef Take() {
    // Nearly always, the end of a request is seen more than once.
    if (slot_.load() == nullptr) return {};
    return RequestRef::Adopt(slot_.exchange(nullptr));
  }

  // The request has ended: nothing is left to cancel. As with Take, this may be the end of all.
  void Close() { Take().Reset(); }

 private:
  std::atomic<Request*> slot_{nullptr};
};

}  // namespace nereid::core
