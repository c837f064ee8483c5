// SPDX-License-Identifier: Apache-2.0
// Requests in a line, linked through their own members: joining and leaving, also from the middle,
// allocates nothing. Owns the requests in it.
#pragma once

#include <cstddef>
#include <utility>

#include "core/request.h"

namespace nereid::schedule {

// Requests in order, linked through their own members; it owns them. REQUIRES, for every call: the
// lock of the scheduler that the requests belong to is held.
class RequestList {
 public:
  RequestList() = default;
  ~RequestList() {
    while (PopFront()) {
    }
  }
  RequestList(const RequestList&) = delete;
  RequestList& operator=(const RequestList&) = delete;

  bool empty() const { return head_ == nullptr; }
  size_t size() const { return size_; }
  core::Request* front() const { return head_; }
  core::Request* back() const { return tail_; }

  void PushBack(core::RequestPtr request) {
    core::Request* const added = request.release();
    added->next = nullptr;
    added->previous = tail_;
    added->queue = this;
    (tail_ != nullptr ? tail_->next : head_) = added;
    tail_ = added;
    ++size_;
  }
  // Adds `request` in front of `next`, which is in this list; at the end if that is null.
  void InsertBefore(core::Request* next, core::RequestPtr request) {
    if (next == nullptr) return PushBack(std::move(request));
    core::Request* const added = request.release();
    added->next = next;
    added->previous = next->previous;
    added->queue = this;
    (next->previous != nullptr ? next->previous->next : head_) = added;
    next->previous = added;
    ++size_;
  }
  // Returns null if the list is empty.
  core::RequestPtr PopFront() { return head_ == nullptr ? nullptr : Unlink(*head_); }

  // Returns the list that contains `request`; null if none does.
  static RequestList* Of(const core::Request& request) {
    return static_cast<RequestList*>(request.queue);
  }
  // Removes `request`, which is in this list.
  core::RequestPtr Unlink(core::Request& request) {
    (request.previous != nullptr ? request.previous->next : head_) = request.next;
    (request.next != nullptr ? request.next->previous : tail_) = request.previous;
    request.next = nullptr;
    request.previous = nullptr;
    request.queue = nullptr;
    --size_;
    return core::RequestPtr(&request);
  }

 private:
  core::Request* head_ = nullptr;
  core::Request* tail_ = nullptr;
  size_t size_ = 0;
};

}  // namespace nereid::schedule
