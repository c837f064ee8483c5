// SPDX-License-Identifier: Apache-2.0
// Decides when requests are sent: in a closed loop (the next when the response has arrived) or in
// an open one (at random times, as independent users would), and when the load ends.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "load/options.h"
#include "load/recorder.h"
#include "load/requests.h"

namespace nereid::bench {

// A place for one request at a time: an HTTP connection or a gRPC stream.
struct Slot {
  Clock::time_point since;  // when its request was sent, or should have been
  Clock::time_point first;  // when its first response arrived
  uint64_t responses = 0;   // to the current request
  bool is_busy = false;
  SequencePlace place;
};

// Controls the load. Confined to one thread. Options:
//   --seconds=2 --warmup=0.3   the duration; or
//   --requests=N               the number of requests
//   --rate=R                   an open loop of R requests per second, Poisson distributed
//   --responses=N              the responses to each request
//   --stall=5                  seconds without a response after which the rest counts as lost
class Driver {
 public:
  using Send = std::function<void(Slot&, std::string_view request)>;

  Driver(const Options& options, Requests requests, Send send);

  // REQUIRES: Begin was not called yet. Slots outlive the driver's work.
  void Add(Slot& slot) { slots_.push_back(&slot); }
  void Begin();

  // Starts requests that are due. Called in each turn of the event loop.
  void Tick();
  // How long the event loop may wait before the next Tick, in milliseconds.
  int WaitMs() const { return rate_ > 0 ? 0 : 50; }

  // Called when a response arrived; returns whether it was the last of its request. If so, call
  // Finished.
  bool Responded(Slot& slot, uint64_t count = 1);
  // Called when the request is complete, whether or not all of its responses arrived.
  void Finished(Slot& slot);

  bool IsDone() const { return is_ending_ && busy_ == 0; }
  void Print() { recorder_.Print(late_, waiting_.size()); }

  bool answers_are_alike() const { return requests_.answers_are_alike(); }
  uint64_t expected_responses() const { return expected_; }

 private:
  void Start(Slot& slot, Clock::time_point since);
  void StartDue(Clock::time_point now);
  void CheckEnd(Clock::time_point now);

  Requests requests_;
  Send send_;
  Recorder recorder_;
  std::vector<Slot*> slots_;
  std::vector<Slot*> idle_;
  std::deque<Clock::time_point> waiting_;  // intended starts that found no idle slot
  Clock::time_point end_;
  Clock::time_point next_arrival_;
  Clock::time_point last_progress_;  // as of the last Tick
  uint64_t progress_ = 0;            // responses, complete or in part
  uint64_t seen_progress_ = 0;
  double warmup_seconds_;
  double seconds_;
  double rate_;
  Clock::duration stall_;
  uint64_t expected_;
  uint64_t limit_;  // of requests; 0: the time decides
  uint64_t started_ = 0;
  uint64_t late_ = 0;
  size_t busy_ = 0;
  bool is_ending_ = false;
  std::mt19937_64 random_{7};
};

}  // namespace nereid::bench
