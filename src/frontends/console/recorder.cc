// SPDX-License-Identifier: Apache-2.0
#include "console/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/recent_log.h"
#include "base/system_limits.h"
#include "observe/recent_traces.h"

namespace nereid::console {

std::chrono::seconds SampleInterval(size_t busy_models, bool is_watched) {
  constexpr size_t kManyModels = 200;
  return std::chrono::seconds(busy_models > kManyModels && !is_watched ? 5 : 1);
}

Recorder::~Recorder() { Stop(); }

void Recorder::Start() {
  base::KeepRecentLog();
  if (observe::Tracing* const tracing = service_.tracing()) tracing->recent().Start();
  thread_ = base::Thread("console", [this] { Run(); });
}

void Recorder::Stop() {
  {
    base::MutexLock lock(mutex_);
    is_stopped_ = true;
    stops_.NotifyAll();
  }
  thread_.Join();
  streams_.End();
}

void Recorder::Run() {
  base::TimePoint next = std::chrono::steady_clock::now();
  for (;;) {
    Take();
    // After a pause of the machine there is one sample, and not one for each second of the pause.
    next = std::max(next + SampleInterval(busy_models_, streams_.any()),
                    std::chrono::steady_clock::now());
    base::MutexLock lock(mutex_);
    while (!is_stopped_ && stops_.WaitUntil(mutex_, next)) {
    }
    if (is_stopped_) return;
  }
}

void Recorder::Take() {
  LoadReading reading;
  reading.now_ns = base::NowNs();
  reading.time_s = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  reading.models = service_.ReadLoads();
  busy_models_ = reading.models.size();
  reading.machine = ReadMachine();
  reading.machine.gpus = service_.ReadGpus();
  NoteSize(reading.machine);
  const std::optional<LoadSample> sample = meter_.Next(reading);
  if (!sample) return;
  history_.Add(*sample);
  if (streams_.any()) streams_.Send(ToJson(*sample, gpu_count_));
}

void Recorder::NoteSize(const MachineReading& machine) {
  if (knows_size_) return;
  knows_size_ = true;
  MachineSize size;
  size.cpus = base::AvailableCpus();
  size.host_cpus = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  size.host_memory_bytes = machine.memory ? machine.memory->total : 0;
  size.memory_bytes = std::min(size.host_memory_bytes, base::ReadSystemLimits().memory_bytes);
  for (const observe::GpuReading& gpu : machine.gpus) {
    if (size.gpus.size() == kMaxGpus) break;
    size.gpus.push_back({gpu.uuid, static_cast<uint64_t>(gpu.total_bytes.value_or(0))});
  }
  gpu_count_ = size.gpus.size();
  history_.SetSize(std::move(size));
}

}  // namespace nereid::console
