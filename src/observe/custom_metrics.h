// SPDX-License-Identifier: Apache-2.0
// Metrics that plug-ins make through the C API and that appear on the metrics page beside the
// server's own.
//
//   auto family = CustomFamily::Create(MetricKind::kCounter, "my_requests", "What it counts");
//   auto series = (*family)->Add({{"model", "m"}}, {});
//   (*series)->Increment(1);
//
// Objects of the same name and kind share a family, and objects with the same labels within it
// share a series. A series is printed as long as it has a holder.
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

// The values are those of TRITONSERVER_MetricKind.
enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

// One series of values. Thread-safe.
class CustomSeries {
 public:
  // `bounds` are those of a histogram's buckets, ascending.
  CustomSeries(MetricKind kind, std::vector<double> bounds);

  MetricKind kind() const { return kind_; }
  // The methods return Unsupported if the kind has no such operation, and InvalidArgument for a
  // counter that would fall.
  base::Result<double> Value() const;
  base::Status Increment(double by);
  base::Status Set(double value);
  base::Status Observe(double value);

  void AddTo(MetricsPage& page, const std::string& labels) const;

 private:
  const MetricKind kind_;
  const std::vector<double> bounds_;
  std::atomic<double> value_{0};  // for a histogram, the sum
  const std::unique_ptr<std::atomic<uint64_t>[]> counts_;
};

// A family of series. Thread-safe.
class CustomFamily {
 public:
  // Returns the family of that name, which exists as long as it has a holder. InvalidArgument if
  // the name is malformed or taken by a family of another kind.
  static base::Result<std::shared_ptr<CustomFamily>> Create(MetricKind kind,
                                                            const std::string& name,
                                                            const std::string& help);

  CustomFamily(MetricKind kind, std::string name, std::string help);

  MetricKind kind() const { return kind_; }
  // Returns the series with these labels. InvalidArgument for malformed labels and for bounds that
  // are not finite or do not ascend.
  base::Result<std::shared_ptr<CustomSeries>> Add(const Labels& labels, std::vector<double> bounds);

  const std::string& name() const { return name_; }
  void AddTo(MetricsPage& page);
  // Logs, once, that the server has a family of this name, so this one is not printed.
  void TellNameIsTaken();

 private:
  const MetricKind kind_;
  const std::string name_;
  const std::string help_;
  base::Mutex mutex_;
  std::atomic<bool> is_told_ = false;
  // The keys are the labels as printed.
  std::map<std::string, std::weak_ptr<CustomSeries>> series_ NEREID_GUARDED_BY(mutex_);
};

// Prints every family of the process, because the calls of the C API do not name a server. A family
// whose name is on the page already is left out.
void AddCustomMetrics(MetricsPage& page);

// Returns what AddCustomMetrics prints of the family of that name; empty if there is none. Costs
// nothing for other families.
std::string CustomFamilyText(const std::string& name);

}  // namespace nereid::observe
