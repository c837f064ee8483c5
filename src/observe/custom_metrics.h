// SPDX-License-Identifier: Apache-2.0
// Metrics that plug-ins make through the C API and that stand on the page beside the server's own.
//
//   auto family = CustomFamily::Create(MetricKind::kCounter, "my_requests", "What it counts");
//   auto series = (*family)->Add({{"model", "m"}}, {});
//   (*series)->Increment(1);
//
// Objects of one name and kind share a family, those of equal labels within it a series; a series
// is printed as long as anybody holds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "observe/metrics_page.h"

namespace nereid::observe {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

// Thread-safe.
class CustomSeries {
 public:
  // `bounds` of a histogram's buckets, ascending.
  CustomSeries(MetricKind kind, std::vector<double> bounds);

  MetricKind kind() const { return kind_; }
  // Unsupported where the kind has no such thing; InvalidArgument for a counter that would fall.
  base::Result<double> Value() const;
  base::Status Increment(double by);
  base::Status Set(double value);
  base::Status Observe(double value);

  void AddTo(MetricsPage& page, const std::string& labels) const;

 private:
  const MetricKind kind_;
  const std::vector<double> bounds_;
  std::atomic<double> value_{0};  // of a histogram: the sum
  const std::unique_ptr<std::atomic<uint64_t>[]> counts_;
};

// Thread-safe.
class CustomFamily {
 public:
  // The family of that name, which exists as long as somebody holds it. InvalidArgument for a name
  // that is none, and for one that is taken by a family of another kind.
  static base::Result<std::shared_ptr<CustomFamily>> Create(MetricKind kind,
                                                            const std::string& name,
                                                            const std::string& help);

  CustomFamily(MetricKind kind, std::string name, std::string help);

  MetricKind kind() const { return kind_; }
  // InvalidArgument for a label that is none and for bounds that do not ascend.
  base::Result<std::shared_ptr<CustomSeries>> Add(const Labels& labels, std::vector<double> bounds);

  void AddTo(MetricsPage& page);

 private:
  const MetricKind kind_;
  const std::string name_;
  const std::string help_;
  base::Mutex mutex_;
  // By their labels as printed.
  std::map<std::string, std::weak_ptr<CustomSeries>> series_ NEREID_GUARDED_BY(mutex_);
};

// Prints every family of the process: the C API names no server.
void AddCustomMetrics(MetricsPage& page);

}  // namespace nereid::observe
