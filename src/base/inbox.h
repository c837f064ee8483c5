// SPDX-License-Identifier: Apache-2.0
// Queues of objects that contain their own link, so that queueing allocates nothing and cannot
// fail:
//
//   Queue   first in, first out; for one thread, or under a lock
//   Inbox   from many threads to one reader, without a lock
//
// An inbox is a stack with the newest object on top. A writer pushes one object at a time; the
// reader takes the whole stack and reverses it, so that the objects of one writer come out in the
// order in which they were pushed. Objects are never popped singly, which is where lock-free stacks
// go wrong.
//
// A reader that finds nothing may rest. Exactly one later writer learns of that: it wakes the
// reader or becomes the reader itself. The mark of a resting reader is stored in the stack, so the
// check for objects and the decision to rest are one atomic step.
#pragma once

#include <atomic>
#include <utility>

namespace nereid::base {

template <typename T>
class Inbox;
template <typename T>
class Queue;

// The link of an object that can be in one Queue or Inbox at a time.
class Queueable {
 public:
  Queueable() = default;
  Queueable(const Queueable&) = delete;
  Queueable& operator=(const Queueable&) = delete;

 protected:
  ~Queueable() = default;

 private:
  template <typename T>
  friend class Inbox;
  template <typename T>
  friend class Queue;

  Queueable* next_ = nullptr;
};

// First in, first out. Does not own its objects, which must live until they are popped.
// Thread-compatible.
template <typename T>
class Queue {
 public:
  Queue() = default;
  Queue(Queue&& other) noexcept
      : head_(std::exchange(other.head_, nullptr)), tail_(std::exchange(other.tail_, nullptr)) {}
  Queue& operator=(Queue&& other) noexcept {
    head_ = std::exchange(other.head_, nullptr);
    tail_ = std::exchange(other.tail_, nullptr);
    return *this;
  }

  bool empty() const { return head_ == nullptr; }

  void Append(T& object) {
    Queueable& link = object;
    link.next_ = nullptr;
    (tail_ != nullptr ? tail_->next_ : head_) = &link;
    tail_ = &link;
  }

  void Append(Queue&& other) {
    if (other.empty()) return;
    (tail_ != nullptr ? tail_->next_ : head_) = std::exchange(other.head_, nullptr);
    tail_ = std::exchange(other.tail_, nullptr);
  }

  // Returns null if the queue is empty.
  T* Pop() {
    Queueable* const first = head_;
    if (first == nullptr) return nullptr;
    head_ = first->next_;
    if (head_ == nullptr) tail_ = nullptr;
    return static_cast<T*>(first);
  }

 private:
  friend class Inbox<T>;

  Queueable* head_ = nullptr;
  Queueable* tail_ = nullptr;
};

// An inbox; see the top of this file. Push is thread-safe. Everything else is for the reader, which
// is one thread at a time; a thread that becomes the reader by a Push that returned true sees
// everything that the previous reader did. All operations are sequentially consistent: the reader
// of an object sees everything that the pushing thread did before.
template <typename T>
class Inbox {
 public:
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Adds `object`. Returns true once for each rest of the reader: the caller must then wake the
  // reader, or becomes the reader. Does not access the inbox after the reader can take `object`.
  // REQUIRES: `object` is in no queue, and lives until the reader has popped it.
  bool Push(T& object) {
    Queueable& link = object;
    Queueable* top = top_.load();
    do {
      link.next_ = top == &resting_ ? nullptr : top;
    } while (!top_.compare_exchange_weak(top, &link));
    return top == &resting_;
  }

  // Returns all objects in order. If there are none, a resting reader continues to rest.
  Queue<T> TakeAll() {
    Queue<T> taken;
    if (IsEmpty()) return taken;
    Queueable* newest = top_.exchange(nullptr);
    taken.tail_ = newest;
    while (newest != nullptr) {
      Queueable* const older = newest->next_;
      newest->next_ = std::exchange(taken.head_, newest);
      newest = older;
    }
    return taken;
  }

  // Makes the next Push return true. Returns false, without a change, if there are objects. If
  // writers become readers, the caller is no longer the reader.
  bool TryRest() {
    Queueable* nothing = nullptr;
    return top_.compare_exchange_strong(nothing, &resting_);
  }

  // Ends a rest that no Push has ended; returns false if a Push has, or if the reader was not
  // resting. For a reader that woke up for another reason, and for a writer that becomes the reader
  // without an object.
  bool EndRest() {
    Queueable* resting = &resting_;
    return top_.load() == resting && top_.compare_exchange_strong(resting, nullptr);
  }

  bool IsEmpty() const {
    const Queueable* const top = top_.load();
    return top == nullptr || top == &resting_;
  }

 private:
  // The mark of an empty inbox whose reader rests.
  class Mark final : public Queueable {};

  Mark resting_;
  std::atomic<Queueable*> top_{nullptr};
};

}  // namespace nereid::base
