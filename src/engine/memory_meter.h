// SPDX-License-Identifier: Apache-2.0
// How much memory this server takes now, of each kind, so that the growth across a load tells what
// the load took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "observe/gpu_metrics.h"

namespace nereid::engine {

// Thread-safe.
class MemoryMeter {
 public:
  // `with_gpus`: also measures the GPUs of the machine, if there are any.
  explicit MemoryMeter(bool with_gpus);

  // "CPU" and then "GPU 0" and so on.
  const std::vector<std::string>& kinds() const { return kinds_; }
  // Returns the bytes of each kind. For the CPU: memory that is not backed by files, of this
  // process and of those that it has started (Python models, isolated models), after the allocator
  // has given back what is free. For a GPU: what it says is in use. Takes a few milliseconds.
  std::vector<uint64_t> Measure();

 private:
  std::unique_ptr<observe::GpuMetrics> gpus_;  // null: not measured
  std::vector<std::string> kinds_ = {"CPU"};
};

// Returns the memory without a file of a process, from the text of its /proc/PID/status; 0 if it
// does not say.
uint64_t AnonymousBytes(std::string_view status);

}  // namespace nereid::engine
