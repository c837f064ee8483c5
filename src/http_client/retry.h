// SPDX-License-Identifier: Apache-2.0
// Retries of an operation that may fail temporarily: how many, and with what pauses between them.
//
//   Attempts attempts(policy, stop);
//   while (true) {
//     if (Try()) return true;
//     if (!attempts.Next()) return false;
//     attempts.Pause();
//   }
#pragma once

#include <chrono>
#include <stop_token>

namespace nereid::http_client {

// How often to retry, and how long to pause: each pause is twice as long as the previous one, up to
// the longest.
struct RetryPolicy {
  int attempts = 5;  // without progress between them
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{2000};
};

// Whether an error with this status may be temporary: the server is overloaded, unreachable or
// failing.
bool MayPass(int status);

// Counts the attempts of one operation. Confined to one thread.
class Attempts {
 public:
  // `stop` ends a pause and prevents further attempts.
  explicit Attempts(RetryPolicy policy, std::stop_token stop = {});

  // Begins the next attempt; returns false if there is none left.
  bool Next();
  // The number of the current attempt, from 1.
  int number() const { return number_; }
  // Called on progress: the count and the pauses begin anew.
  void Restart();
  // Waits for a random time between half of the current pause and all of it, so that clients that
  // met the same fault do not retry at the same time. The pause grows with each attempt.
  void Pause();

 private:
  const RetryPolicy policy_;
  const std::stop_token stop_;
  int number_ = 1;
  std::chrono::milliseconds pause_;
};

}  // namespace nereid::http_client
