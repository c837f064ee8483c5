// SPDX-License-Identifier: Apache-2.0
// One thread of a load.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/load.h"
#include "loadgen/request_client.h"

namespace nereid::loadgen {

// What the threads of a load share.
struct SharedLoad {
  const Target& target;
  const std::vector<std::string>& requests;
  const LoadPlan& plan;
  base::TimePoint begin;
  base::TimePoint from;  // the measurement
  base::TimePoint to;
  std::stop_token stop;
  std::atomic<uint64_t> started{0};  // requests of the measurement, if their number limits it
  std::atomic<uint64_t> ended{0};    // likewise; for the progress
  std::atomic<bool> is_over{false};  // the server is away: all threads end
};

// Sends an equal part of the load. Run and what follows are confined to one thread.
class Worker {
 public:
  // `index` is the number of the thread. `load` outlives this.
  Worker(SharedLoad& load, size_t index);

  void Run();

  // The following are for the time after Run.
  const Recorder& recorder() const { return recorder_; }
  const base::Status& status() const { return status_; }
  double busy() const { return busy_; }

 private:
  // A place for one request at a time.
  struct Call {
    base::TimePoint due;
    base::TimePoint sent;  // later than `due` if all calls were busy then
    bool is_busy = false;
  };

  bool is_open() const { return load_.plan.rate > 0; }
  // Whether another request may be started; counts it if their number is limited.
  bool TakeTurn(base::TimePoint now);
  void Start(size_t call, base::TimePoint due);
  void StartDue(base::TimePoint now);
  void Ended(size_t call, Ending ending, std::string_view text);
  // Starts the next request of a call that has become free.
  void Continue(size_t call, base::TimePoint now);
  void CheckTimeouts(base::TimePoint now);
  void Tick(base::TimePoint now);
  bool IsDone(base::TimePoint now) const;
  void GiveUp(base::TimePoint now);

  SharedLoad& load_;
  Poller poller_;
  std::unique_ptr<RequestClient> client_;
  Recorder recorder_;
  Arrivals arrivals_;
  std::vector<Call> calls_;
  std::vector<size_t> idle_;
  std::deque<base::TimePoint> waiting_;  // requests that were due and found no idle call
  size_t next_request_;
  size_t busy_calls_ = 0;
  bool is_ending_ = false;
  base::TimePoint last_check_;
  base::Status status_;
  double busy_ = 0;
};

}  // namespace nereid::loadgen
