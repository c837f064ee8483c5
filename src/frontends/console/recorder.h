// SPDX-License-Identifier: Apache-2.0
// Follows the server's load: a thread that takes a sample each second, keeps it in the history, and
// sends it to the browsers that look. Requests know nothing of it: the numbers are those that the
// statistics count anyway.
#pragma once

#include <chrono>

#include "base/mutex.h"
#include "base/thread.h"
#include "console/history.h"
#include "console/live_streams.h"
#include "console/load_sample.h"
#include "service/service.h"

namespace nereid::console {

// Returns the time from one sample to the next. With many models that get requests, reading them
// each second would cost a machine that is otherwise idle about a thousandth of a processor, so
// then it is each second only while somebody looks.
std::chrono::seconds SampleInterval(size_t busy_models, bool is_watched);

// Thread-safe, but for Take.
class Recorder {
 public:
  // `service` outlives this object. Takes no samples until Start.
  explicit Recorder(service::Service& service) : service_(service) {}
  // Stops.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Starts the thread, and keeps the last messages of the log and the last traces from now on. Call
  // it once.
  void Start();
  // Ends the thread and the streams. A second call does nothing.
  void Stop();

  // Takes a sample now. For the thread, and for tests that have started none.
  void Take();

  const History& history() const { return history_; }
  LiveStreams& streams() { return streams_; }

 private:
  void Run();
  void NoteSize(const MachineReading& machine);

  service::Service& service_;
  History history_;
  LiveStreams streams_;
  // Confined to the thread that takes samples.
  LoadMeter meter_;
  size_t busy_models_ = 0;  // in the last reading
  size_t gpu_count_ = 0;
  bool knows_size_ = false;

  base::Mutex mutex_;
  base::CondVar stops_;
  bool is_stopped_ NEREID_GUARDED_BY(mutex_) = false;
  base::Thread thread_;
};

}  // namespace nereid::console
