// SPDX-License-Identifier: Apache-2.0
// Handles events one at a time without a lock and without a thread of its own: the thread that
// brings an event to a strand where nothing goes on drives it, which means that it handles its
// event and whatever others bring meanwhile. They leave their events and go. So what events work on
// needs no lock, events of one thread are handled in order, and an event that is brought from
// within another one's handling does not recurse.
#pragma once

#include <exception>

#include "base/inbox.h"

namespace nereid::base {

// `Event` derives from Queueable. Thread-safe.
template <typename Event>
class Strand {
 public:
  Strand() { inbox_.TryRest(); }

  // Hands `event` over, which has to live until it is handled. True: the caller is the driver and
  // has to call Drive. Otherwise the driver handles the event; that may be this same thread,
  // further up its stack. The strand is not touched any more once the event can be handled.
  [[nodiscard]] bool Push(Event& event) { return inbox_.Push(event); }

  // Calls `handle` with one event after another until none is left. If that throws, the other
  // events are handled nevertheless, because nobody else would, and then the first exception leaves
  // here. REQUIRES: Push returned true on this thread. The strand has to outlive this, but not the
  // last step of it, after which another thread may be the driver.
  template <typename Handle>
  void Drive(Handle handle) {
    const Driving driving(*this);
    std::exception_ptr failure;
    do {
      Queue<Event> events = inbox_.TakeAll();
      while (Event* const event = events.Pop()) {
        try {
          handle(*event);
        } catch (...) {
          if (failure == nullptr) failure = std::current_exception();
        }
      }
    } while (!inbox_.TryRest());
    if (failure != nullptr) [[unlikely]]
      std::rethrow_exception(failure);
  }

  // Whether the calling thread is inside Drive, where it must not wait for an event of the strand.
  bool IsDriver() const {
    const Driving* driving = Driving::innermost;
    while (driving != nullptr && driving->strand != this) driving = driving->outer;
    return driving != nullptr;
  }

 private:
  // A call of Drive on this thread. They nest where handling an event of one strand brings one to
  // another.
  struct Driving {
    explicit Driving(const Strand& driven) : strand(&driven), outer(innermost) { innermost = this; }
    ~Driving() { innermost = outer; }
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;

    static inline thread_local const Driving* innermost = nullptr;

    const Strand* const strand;
    const Driving* const outer;
  };

  Inbox<Event> inbox_;  // rests while there is no driver
};

}  // namespace nereid::base
