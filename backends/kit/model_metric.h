// SPDX-License-Identifier: Apache-2.0
// Counters of models on the server's metrics page. A model must not fail because of metrics, so
// whatever the server refuses is null, and a null counter counts nothing.
#pragma once

#include <string>

#include "backend_kit/error.h"
#include "backend_kit/handles.h"

namespace nereid::backend {

// Returns the family of that name, which the server makes if it is not there.
inline MetricFamily NewCounterFamily(const char* name, const char* help) {
  TRITONSERVER_MetricFamily* family = nullptr;
  const Error error(
      TRITONSERVER_MetricFamilyNew(&family, TRITONSERVER_METRIC_KIND_COUNTER, name, help));
  return MetricFamily(error.ok() ? family : nullptr);
}

// Returns the counter of `model` in `family`, labelled with the model's name and version. Destroyed
// before the family.
inline Metric NewModelCounter(TRITONSERVER_MetricFamily* family, TRITONBACKEND_Model* model) {
  const char* name = nullptr;
  uint64_t version = 0;
  if (family == nullptr || !Error(TRITONBACKEND_ModelName(model, &name)).ok() ||
      !Error(TRITONBACKEND_ModelVersion(model, &version)).ok()) {
    return nullptr;
  }
  const Parameter model_label(
      TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, name));
  const Parameter version_label(TRITONSERVER_ParameterNew("version", TRITONSERVER_PARAMETER_STRING,
                                                          std::to_string(version).c_str()));
  const TRITONSERVER_Parameter* labels[] = {model_label.get(), version_label.get()};
  TRITONSERVER_Metric* metric = nullptr;
  const Error error(TRITONSERVER_MetricNew(&metric, family, labels, 2));
  return Metric(error.ok() ? metric : nullptr);
}

// Any thread may call this.
inline void Increment(TRITONSERVER_Metric* counter, double by) {
  if (counter != nullptr) Error(TRITONSERVER_MetricIncrement(counter, by)).Ignore();
}

}  // namespace nereid::backend
