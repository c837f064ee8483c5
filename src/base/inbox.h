// SPDX-License-Identifier: Apache-2.0
// Queues of objects that bring their own link, so that queueing allocates nothing and cannot fail:
//
//   Queue   first in, first out; for one thread, or under a lock
//   Inbox   from many threads to one reader, without a lock
//
// An inbox is a stack of what has come, the newest on top. Writers push one object each; the reader
// takes the whole stack and turns it round, so that objects of one writer come out in the order in
// which they went in. Nothing is ever taken off singly, which is where lock-free stacks go wrong.
//
// A reader that finds nothing may rest. The writer that comes next is told, and nobody else: it
// wakes the reader, or reads on in its place. The mark of resting lies in the stack itself, so the
// question "has anything come?" and the decision to rest are one atomic step.
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

// First in, first out. Owns nothing: what is queued has to live until it is popped.
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

  // Null when there is none.
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

// See the top of this file. Push is thread-safe; everything else is for the reader, that is for one
// thread at a time, and each reader sees what the one before it did if it became the reader by a
// Push that returned true. Everything is sequentially consistent: a push hands over whatever its
// thread did before.
template <typename T>
class Inbox {
 public:
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // `object` must be in no queue, and live until the reader has popped it. True when the reader
  // rests, once for each rest: the caller has to wake it, or is the reader from now on. Nothing of
  // the inbox is touched any more once the reader can take `object`.
  bool Push(T& object) {
    Queueable& link = object;
    Queueable* top = top_.load();
    do {
      link.next_ = top == &resting_ ? nullptr : top;
    } while (!top_.compare_exchange_weak(top, &link));
    return top == &resting_;
  }

  // Everything that has come, in order. A reader that rests rests on if nothing has.
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

  // From now on the next Push returns true; false, and nothing changes, when something has come.
  // The caller is the reader no longer if writers take over from readers that rest.
  bool TryRest() {
    Queueable* nothing = nullptr;
    return top_.compare_exchange_strong(nothing, &resting_);
  }

  // Ends a rest that no Push has ended: false when a Push has, or when there was none. For a reader
  // that woke up for another reason, and for a writer that becomes the reader without an object.
  bool EndRest() {
    Queueable* resting = &resting_;
    return top_.load() == resting && top_.compare_exchange_strong(resting, nullptr);
  }

  bool IsEmpty() const {
    const Queueable* const top = top_.load();
    return top == nullptr || top == &resting_;
  }

 private:
  // Marks an inbox that is empty and whose reader rests.
  class Mark final : public Queueable {};

  Mark resting_;
  std::atomic<Queueable*> top_{nullptr};
};

}  // namespace nereid::base
