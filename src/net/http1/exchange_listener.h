// SPDX-License-Identifier: Apache-2.0
// The listener of one exchange and the calls to it, which come on the reactor while another thread
// may set or clear it. What each step makes of the state:
//
//               Set           Clear         a call                        the call has ended
//   nobody      listening     nobody        nobody, nothing is called     -
//   listening   listening     nobody        calling                       -
//   calling     waits, then   waits, then   -                             listening or nobody
//               as above      as above
//
// From inside a call, where waiting would never end, Set and Clear decide what the end of the call
// makes of it. Otherwise the listener stays after OnStreamWritable and is gone after OnDisconnect.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace nereid::http1 {

// What can happen to an exchange between Handle and its reply. Calls come on the connection's
// reactor; none starts after Respond, EndStream or SetEvents(nullptr) returned. They must be brief;
// they may call Respond or EndStream of their own exchange.
class HttpExchangeEvents {
 public:
  // The client closed or reset the connection. The exchange must still be replied to (or dropped).
  virtual void OnDisconnect() = 0;
  // A stream that refused a chunk for lack of room takes chunks again.
  virtual void OnStreamWritable() {}

 protected:
  ~HttpExchangeEvents() = default;
};

// Set and Clear are for the thread that has the exchange, everything else is for the reactor, on
// whose thread this is constructed. Neither allocates nor takes a lock.
class ExchangeListener {
 public:
  // `events` outlives its listening. A disconnect that already happened is reported from inside
  // this call.
  void Set(HttpExchangeEvents& events);
  // When this returns, no call is running (but the one it may come from) and none follows.
  void Clear();
  // Whether the client is known to be gone. Any thread.
  bool disconnected() const { return disconnected_.load(); }

  // The client has gone: tells the listener, once in an exchange.
  void Disconnect();
  // A stream that was told to pause may go on.
  void ResumeStream();
  // The exchange is over, and the next one has not begun; relaxed, because no other thread has any.
  void Reset() { disconnected_.store(false, std::memory_order_relaxed); }

 private:
  enum class State : uint32_t { kNobody, kListening, kCalling };

  // Makes the state kNobody, after a call of another thread has ended; false from inside a call.
  bool Remove();
  // From kListening to `next`; false when it is not that.
  bool Take(State next);
  void EndCall();

  const std::thread::id reactor_ = std::this_thread::get_id();
  std::atomic<State> state_{State::kNobody};
  std::atomic<bool> disconnected_{false};
  // Of who has made the state kNobody, or kCalling; read in kCalling.
  HttpExchangeEvents* events_ = nullptr;
  HttpExchangeEvents* next_ = nullptr;  // after the call that is running; the reactor's
};

}  // namespace nereid::http1
