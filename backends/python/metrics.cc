// SPDX-License-Identifier: Apache-2.0
#include "python_backend/metrics.h"

#include "python_backend/json.h"

namespace nereid::python {

using backend::Error;
using backend::Result;

namespace {

// Limits the metrics of each kind and worker: more than any metrics page can hold, and little
// memory.
constexpr size_t kMaxMetrics = 65536;

}  // namespace

Result<uint64_t> MetricTable::NewFamily(TRITONSERVER_MetricKind kind, const std::string& name,
                                        const std::string& description) {
  if (families_.size() >= kMaxMetrics) return Error::Unavailable("the model has too many metrics");
  TRITONSERVER_MetricFamily* family = nullptr;
  NEREID_KIT_TRY(TRITONSERVER_MetricFamilyNew(&family, kind, name.c_str(), description.c_str()));
  families_.emplace(++last_, family);
  return last_;
}

void MetricTable::DeleteFamily(uint64_t family) {
  std::erase_if(metrics_, [&](const auto& metric) { return metric.second.family == family; });
  families_.erase(family);
}

Result<uint64_t> MetricTable::NewMetric(uint64_t family, std::string_view labels,
                                        const std::optional<std::vector<double>>& buckets) {
  const auto found = families_.find(family);
  if (found == families_.end()) return Error::Internal("the metric family is gone");
  if (metrics_.size() >= kMaxMetrics) return Error::Unavailable("the model has too many metrics");
  std::vector<backend::Parameter> owned;
  if (labels != "null") {
    const auto refuse = [](const char*, const auto&) {
      return Error::InvalidArgument("Values of labels must be strings.").Release();
    };
    // A copy, because the worker must not be able to change what is parsed.
    NEREID_KIT_TRY(ForEachParameter(
                       std::string(labels), "labels",
                       [&](const char* name, const char* value) -> TRITONSERVER_Error* {
                         owned.emplace_back(
                             TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_STRING, value));
                         return nullptr;
                       },
                       refuse, refuse)
                       .Release());
  }
  std::vector<const TRITONSERVER_Parameter*> parameters;
  for (const backend::Parameter& parameter : owned) parameters.push_back(parameter.get());
  TRITONSERVER_Metric* metric = nullptr;
  if (!buckets) {
    NEREID_KIT_TRY(
        TRITONSERVER_MetricNew(&metric, found->second.get(), parameters.data(), parameters.size()));
  } else {
    TRITONSERVER_MetricArgs* arguments = nullptr;
    NEREID_KIT_TRY(TRITONSERVER_MetricArgsNew(&arguments));
    Error error(TRITONSERVER_MetricArgsSetHistogram(arguments, buckets->data(), buckets->size()));
    if (error.ok()) {
      error = Error(TRITONSERVER_MetricNewWithArgs(&metric, found->second.get(), parameters.data(),
                                                   parameters.size(), arguments));
    }
    Error(TRITONSERVER_MetricArgsDelete(arguments)).Ignore();
    if (!error.ok()) return error;
  }
  metrics_.emplace(++last_, Child{family, backend::Metric(metric)});
  return last_;
}

void MetricTable::DeleteMetric(uint64_t metric) { metrics_.erase(metric); }

TRITONSERVER_Metric* MetricTable::Find(uint64_t metric) const {
  const auto found = metrics_.find(metric);
  return found == metrics_.end() ? nullptr : found->second.metric.get();
}

}  // namespace nereid::python
