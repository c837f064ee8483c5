// SPDX-License-Identifier: Apache-2.0
// The listener of one exchange and the calls to it, which come on the reactor while another thread
// may set or clear it. The state after each step:
//
//               Set           Clear         a call                        the call has ended
//   nobody      listening     nobody        nobody, nothing is called     -
//   listening   listening     nobody        calling                       -
//   calling     waits, then   waits, then   -                             listening or nobody
//               as above      as above
//
// From inside a call, where waiting would never end, Set and Clear decide the state after the call.
// Otherwise the listener stays after OnStreamWritable and is removed after OnDisconnect.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace nereid::http1 {

// Events of an exchange between Handle and its reply. Calls come on the connection's reactor; none
// starts after Respond, EndStream or SetEvents(nullptr) returned. They must be brief; they may call
// Respond or EndStream of their own exchange.
class HttpExchangeEvents {
 public:
  // The client closed or reset the connection. The exchange must still be replied to (or dropped).
  virtual void OnDisconnect() = 0;
  // A stream that refused a chunk for lack of room accepts chunks again.
  virtual void OnStreamWritable() {}

 protected:
  ~HttpExchangeEvents() = default;
};

// The thread that has the exchange calls Set and Clear; everything else is for the reactor, on
// whose thread this is constructed. Neither allocates nor takes a lock.
class ExchangeListener {
 public:
  // `events` must live until it is removed. A disconnect that already happened is reported from
  // inside this call.
  void Set(HttpExchangeEvents& events);
  // When this returns, no call is running (except the one it may come from) and none follows.
  void Clear();
  // Whether the client is known to have disconnected. Any thread.
  bool disconnected() const { return disconnected_.load(); }

  // Reports that the client has disconnected: notifies the listener, once per exchange.
  void Disconnect();
  // Reports that a stream that was told to pause may continue.
  void ResumeStream();
  // Called between two exchanges; relaxed, because no other thread has the exchange then.
  void Reset() { disconnected_.store(false, std::memory_order_relaxed); }

 private:
  enum class State : uint32_t { kNobody, kListening, kCalling };

  // Waits until a call of another thread has ended, and sets the state kNobody; returns false from
  // inside a call.
  bool Remove();
  // Changes the state from kListening to `next`; returns false if it is another one.
  bool Take(State next);
  void EndCall();

  const std::thread::id reactor_ = std::this_thread::get_id();
  std::atomic<State> state_{State::kNobody};
  std::atomic<bool> disconnected_{false};
  // Owned by the thread that has made the state kNobody or kCalling; read in kCalling.
  HttpExchangeEvents* events_ = nullptr;
  HttpExchangeEvents* next_ = nullptr;  // for after the current call; confined to the reactor
};

}  // namespace nereid::http1
