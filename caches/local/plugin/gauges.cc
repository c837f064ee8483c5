// SPDX-License-Identifier: Apache-2.0
#include "gauges.h"

namespace nereid::local_cache {
namespace {

struct Description {
  const char* name;
  const char* help;
};

constexpr std::array<Description, kGauges> kDescriptions = {{
    {"nv_cache_util", "Cache utilization [0.0 - 1.0]"},
    {"nv_cache_num_entries", "Number of responses stored in response cache"},
    {"nv_cache_num_hits", "Number of cache hits in response cache"},
    {"nv_cache_num_misses", "Number of cache misses in response cache"},
    {"nv_cache_num_lookups", "Number of cache lookups in response cache"},
    {"nv_cache_num_evictions", "Number of cache evictions in response cache"},
    {"nv_cache_lookup_duration", "Total cache lookup duration (hit and miss), in microseconds"},
    {"nv_cache_insertion_duration", "Total cache insertion duration, in microseconds"},
}};

// A metric that fails must not make the cache fail.
bool Succeeds(TRITONSERVER_Error* error) {
  if (error == nullptr) return true;
  TRITONSERVER_ErrorDelete(error);
  return false;
}

}  // namespace

Gauges::Gauges() {
  for (size_t i = 0; i < kGauges; ++i) {
    Entry& entry = entries_[i];
    if (!Succeeds(TRITONSERVER_MetricFamilyNew(&entry.family, TRITONSERVER_METRIC_KIND_GAUGE,
                                               kDescriptions[i].name, kDescriptions[i].help))) {
      entry.family = nullptr;
    } else if (!Succeeds(TRITONSERVER_MetricNew(&entry.metric, entry.family, nullptr, 0))) {
      entry.metric = nullptr;
    }
  }
}

Gauges::~Gauges() {
  for (Entry& entry : entries_) {
    if (entry.metric != nullptr) Succeeds(TRITONSERVER_MetricDelete(entry.metric));
    if (entry.family != nullptr) Succeeds(TRITONSERVER_MetricFamilyDelete(entry.family));
  }
}

void Gauges::Add(Gauge gauge, double by) {
  TRITONSERVER_Metric* const metric = entries_[static_cast<size_t>(gauge)].metric;
  if (metric != nullptr) Succeeds(TRITONSERVER_MetricIncrement(metric, by));
}

void Gauges::Set(Gauge gauge, double value) {
  TRITONSERVER_Metric* const metric = entries_[static_cast<size_t>(gauge)].metric;
  if (metric != nullptr) Succeeds(TRITONSERVER_MetricSet(metric, value));
}

}  // namespace nereid::local_cache
