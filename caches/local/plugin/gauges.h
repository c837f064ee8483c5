// SPDX-License-Identifier: Apache-2.0
// The cache's metrics on the server's metrics page, under the names of Triton's local cache.
#pragma once

#include <array>
#include <cstddef>

#include "triton/core/tritonserver.h"

namespace nereid::local_cache {

// The metrics, in the order of their descriptions.
enum class Gauge : size_t {
  kUtilization,
  kEntries,
  kHits,
  kMisses,
  kLookups,
  kEvictions,
  kLookupUs,
  kInsertionUs,
};
inline constexpr size_t kGauges = 8;

// The metrics. Thread-safe. None are made if the server has metrics disabled.
class Gauges {
 public:
  Gauges();
  ~Gauges();
  Gauges(const Gauges&) = delete;
  Gauges& operator=(const Gauges&) = delete;

  void Add(Gauge gauge, double by);
  void Set(Gauge gauge, double value);

 private:
  // A metric and the value that it shows.
  struct Entry {
    TRITONSERVER_MetricFamily* family = nullptr;
    TRITONSERVER_Metric* metric = nullptr;  // null: not shown
  };
  std::array<Entry, kGauges> entries_;
};

}  // namespace nereid::local_cache
