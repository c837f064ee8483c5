// SPDX-License-Identifier: Apache-2.0
// How long the executions of one model take lately, and from that, how soon a request that arrives
// now can be answered. It learns from executions while others waited: these are as large as
// batches get under load. Pure logic on clock readings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nereid::schedule {

// An average that follows the last few samples, and how far they lie from it. Thread-compatible.
class RecentAverage {
 public:
  void Note(uint64_t sample);
  void Forget() { *this = {}; }
  bool is_known() const { return is_known_; }
  uint64_t value() const { return value_; }
  uint64_t deviation() const { return deviation_; }

 private:
  bool is_known_ = false;
  uint64_t value_ = 0;
  uint64_t deviation_ = 0;
};

// A batch that an instance takes.
struct TakenBatch {
  size_t request_count = 0;
  size_t item_count = 0;       // the sum of the requests' batch sizes
  bool leaves_others = false;  // more requests waited than it has
  uint64_t waited_ns = 0;      // by its requests, on average
};

// An execution that has ended.
struct PastExecution {
  size_t request_count = 0;
  uint64_t waited_ns = 0;    // before it, by its requests on average
  uint64_t duration_ns = 0;  // 0: not known
};

// Confined to the lock of its scheduler. Costs nothing until it is switched on, by the first
// request that needs it.
class ServiceTimes {
 public:
  // `max_items`: the largest sum of batch sizes in one execution; 0: requests are never batched.
  explicit ServiceTimes(size_t max_items) : max_items_(max_items) {}

  bool is_on() const { return is_on_; }
  void SwitchOn() { is_on_ = true; }

  // An instance may be known by the number of one that has left.
  void AddInstance(size_t instance);
  // Lets nobody expect anything of `instance` any more.
  void RetireInstance(size_t instance);
  size_t instance_count() const { return instance_count_; }
  // The two ends of an execution. REQUIRES: is_on().
  void NoteTaken(size_t instance, const TakenBatch& batch, uint64_t now_ns);
  PastExecution NoteEnded(size_t instance, uint64_t now_ns);
  // The number of requests that are being executed, as far as that is known.
  size_t executing_count() const { return executing_count_; }

  // Returns how long it will probably take from `now_ns` until a request is executed in front of
  // which `ahead` others wait. 0: nothing speaks against its running at once.
  uint64_t UntilStartNs(size_t ahead, uint64_t now_ns) const;
  // Returns the same until it has its response, with some reserve so that few requests take longer.
  // 0 for a request that may run nearly at once, even if that takes long: otherwise nobody would
  // notice when a model becomes faster.
  uint64_t UntilResponseNs(size_t ahead, uint64_t now_ns) const;

 private:
  struct Instance {
    bool is_present = false;
    uint64_t taken_ns = 0;  // 0: idle, as far as is known
    TakenBatch batch;
  };

  // How long one execution takes under load.
  const RecentAverage& Duration() const { return full_ns_.is_known() ? full_ns_ : any_ns_; }
  // How many requests one execution takes under load.
  uint64_t RequestsPerExecution() const;
  // How long it takes until an instance is idle.
  uint64_t UntilIdleNs(uint64_t now_ns) const;

  const size_t max_items_;
  bool is_on_ = false;
  std::vector<Instance> instances_;  // by number
  size_t instance_count_ = 0;
  size_t executing_count_ = 0;
  RecentAverage any_ns_;   // of all executions
  RecentAverage full_ns_;  // of those that left others waiting
  // In hundredths, of executions that left others waiting.
  RecentAverage full_requests_;
  RecentAverage items_per_request_;  // in hundredths
  size_t since_full_ = 0;            // executions since one left others waiting
};

}  // namespace nereid::schedule
