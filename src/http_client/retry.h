// SPDX-License-Identifier: Apache-2.0
// Attempts at something that may fail and pass: how many, and with what pauses between them.
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

// How often something is tried, and how long the pauses between the attempts are: each twice as
// long as the one before it, up to the longest.
struct RetryPolicy {
  int attempts = 5;  // without progress between them
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{2000};
};

// Whether a reply with this status may become another one in time: the server is overloaded, away
// or has lost its way.
bool MayPass(int status);

// Confined to one thread.
class Attempts {
 public:
  // `stop` ends a pause and allows no more attempts.
  explicit Attempts(RetryPolicy policy, std::stop_token stop = {});

  // Goes on to the next attempt; false when there is none.
  bool Next();
  // Of the current attempt, from 1.
  int number() const { return number_; }
  // There was progress: the count and the pauses begin anew.
  void Restart();
  // Waits between half of the time that grows with each pause and all of it: clients that met the
  // same fault at the same time do not come back at the same time.
  void Pause();

 private:
  const RetryPolicy policy_;
  const std::stop_token stop_;
  int number_ = 1;
  std::chrono::milliseconds pause_;
};

}  // namespace nereid::http_client
