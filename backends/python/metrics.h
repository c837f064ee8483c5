// SPDX-License-Identifier: Apache-2.0
// The metrics of one worker's model, by the numbers under which the worker knows them.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "backend_kit/handles.h"

namespace nereid::python {

// Confined to the thread of the worker's calls. The destructor deletes what is left, metrics before
// families.
class MetricTable {
 public:
  backend::Result<uint64_t> NewFamily(TRITONSERVER_MetricKind kind, const std::string& name,
                                      const std::string& description);
  // Deletes a family and its metrics.
  void DeleteFamily(uint64_t family);
  // `labels` is a JSON object whose values are texts, or null.
  backend::Result<uint64_t> NewMetric(uint64_t family, std::string_view labels,
                                      const std::optional<std::vector<double>>& buckets);
  void DeleteMetric(uint64_t metric);
  // Returns null if there is none.
  TRITONSERVER_Metric* Find(uint64_t metric) const;

 private:
  // A metric that the model made, and its family.
  struct Child {
    uint64_t family;
    backend::Metric metric;
  };
  uint64_t last_ = 0;
  std::map<uint64_t, backend::MetricFamily> families_;
  std::map<uint64_t, Child> metrics_;  // destroyed first
};

}  // namespace nereid::python
