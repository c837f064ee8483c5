// SPDX-License-Identifier: Apache-2.0
// The last hour of the server's load, one sample for each second, and what the console reads of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "console/load_sample.h"

namespace nereid::console {

// What does not change from sample to sample.
struct MachineSize {
  unsigned cpus = 0;          // that the server may use
  unsigned host_cpus = 0;     // of the machine, of which the samples have the busy part
  uint64_t memory_bytes = 0;  // that the server may use
  uint64_t host_memory_bytes = 0;
  // Name and memory of each GPU of which there are samples.
  struct Gpu {
    std::string name;
    uint64_t memory_bytes = 0;
  };
  std::vector<Gpu> gpus;
};

// Keeps a bounded number of samples. Thread-safe.
class History {
 public:
  // An hour takes 430 KB, once it has passed; more than an hour, if seconds were left out.
  static constexpr size_t kSamples = 3600;

  explicit History(size_t capacity = kSamples) : capacity_(capacity) {}

  void Add(const LoadSample& sample);
  void SetSize(MachineSize size);
  // Returns all samples as JSON, the oldest first: a list for each column of the samples, in which
  // null stands for what is not known, and the size of the machine.
  std::string Json() const;

 private:
  std::vector<LoadSample> InOrder() const;

  const size_t capacity_;
  mutable base::Mutex mutex_;
  std::vector<LoadSample> samples_ NEREID_GUARDED_BY(mutex_);
  size_t next_ NEREID_GUARDED_BY(mutex_) = 0;  // where the next sample goes once there are all
  MachineSize size_ NEREID_GUARDED_BY(mutex_);
};

// Returns one sample as JSON: a member for each column.
std::string ToJson(const LoadSample& sample, size_t gpu_count);

}  // namespace nereid::console
