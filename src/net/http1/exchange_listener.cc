// SPDX-License-Identifier: Apache-2.0
// Set and Disconnect may run at the same time. Each first publishes its own step (listening,
// disconnected) and then checks for the other's, in one order for all threads (seq_cst), so that at
// least one of the two sees both; Take decides which of them makes the call.
#include "http1/exchange_listener.h"

namespace nereid::http1 {

bool ExchangeListener::Remove() {
  State state = state_.load();
  while (state != State::kNobody) {
    if (state == State::kCalling) {
      if (std::this_thread::get_id() == reactor_) return false;
      state_.wait(State::kCalling);
      state = state_.load();
    } else if (state_.compare_exchange_weak(state, State::kNobody)) {
      break;
    }
  }
  return true;
}

bool ExchangeListener::Take(State next) {
  State expected = State::kListening;
  return state_.compare_exchange_strong(expected, next);
}

void ExchangeListener::Set(HttpExchangeEvents& events) {
  if (!Remove()) {
    next_ = &events;
    return;
  }
  events_ = &events;
  state_.store(State::kListening);
  if (disconnected_.load() && Take(State::kNobody)) events.OnDisconnect();
}

void ExchangeListener::Clear() {
  if (!Remove()) next_ = nullptr;
}

void ExchangeListener::EndCall() {
  events_ = next_;
  state_.store(next_ != nullptr ? State::kListening : State::kNobody);
  state_.notify_all();
}

void ExchangeListener::Disconnect() {
  if (disconnected_.exchange(true)) return;
  // Repeated only if the listener sets another one, which must be notified too.
  while (Take(State::kCalling)) {
    next_ = nullptr;
    events_->OnDisconnect();
    EndCall();
  }
}

void ExchangeListener::ResumeStream() {
  if (!Take(State::kCalling)) return;
  next_ = events_;
  events_->OnStreamWritable();
  EndCall();
}

}  // namespace nereid::http1
