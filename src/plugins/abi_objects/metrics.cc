// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_MetricFamily*, TRITONSERVER_Metric*: metrics that plug-ins make. Rules and texts
// follow Triton's core/src/metric_family.cc and tritonserver.cc.
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "abi_objects/error.h"
#include "abi_objects/parameter.h"
#include "observe/custom_metrics.h"
#include "triton/core/tritonserver.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::InternalError;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;
using nereid::observe::CustomFamily;
using nereid::observe::CustomSeries;
using nereid::observe::MetricKind;

// A family that a plug-in made. Its metrics must be deleted first.
struct TRITONSERVER_MetricFamily {
  std::shared_ptr<CustomFamily> family;
  std::atomic<size_t> metric_count{0};
};

// Options of a metric that depend on its kind.
struct TRITONSERVER_MetricArgs {
  bool is_histogram = false;
  std::vector<double> bounds;
};

// A metric that a plug-in made.
struct TRITONSERVER_Metric {
  TRITONSERVER_MetricFamily* family;
  std::shared_ptr<CustomSeries> series;
};

namespace {

// The values of both enumerations are the same.
TRITONSERVER_MetricKind ToKind(MetricKind kind) {
  return static_cast<TRITONSERVER_MetricKind>(kind);
}

Status CheckArgs(MetricKind kind, const TRITONSERVER_MetricArgs* args) {
  if (kind != MetricKind::kHistogram) {
    return args == nullptr
               ? Status()
               : InvalidArgumentError(std::string("Unexpected args found in ") +
                                      (kind == MetricKind::kCounter ? "counter" : "gauge") +
                                      " Metric constructor.");
  }
  if (args == nullptr) return InvalidArgumentError("Bucket boundaries not found in Metric args.");
  if (!args->is_histogram) return InvalidArgumentError("Metric args not set to histogram kind.");
  return {};
}

nereid::base::Result<nereid::observe::Labels> ToLabels(
    std::span<const TRITONSERVER_Parameter* const> parameters) {
  nereid::observe::Labels labels;
  for (const TRITONSERVER_Parameter* const parameter : parameters) {
    const auto* const text = std::get_if<std::string>(&parameter->value);
    if (text == nullptr) {
      return InvalidArgumentError("Parameter [" + parameter->name +
                                  "] must have a type of TRITONSERVER_PARAMETER_STRING to be added "
                                  "as a label.");
    }
    std::erase_if(labels, [&](const auto& label) { return label.first == parameter->name; });
    labels.emplace_back(parameter->name, *text);
  }
  return labels;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily** family,
                                                 const TRITONSERVER_MetricKind kind,
                                                 const char* name, const char* description) {
  const int number = kind;  // callers in C may pass any number
  return RunApiCall([&]() -> Status {
    if (number < TRITONSERVER_METRIC_KIND_COUNTER || number > TRITONSERVER_METRIC_KIND_HISTOGRAM) {
      return InvalidArgumentError("Unsupported kind passed to MetricFamily constructor.");
    }
    NEREID_ASSIGN_OR_RETURN(
        auto made, CustomFamily::Create(static_cast<MetricKind>(number), name, description));
    *family = new TRITONSERVER_MetricFamily{std::move(made)};
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily* family) {
  return RunApiCall([&]() -> Status {
    if (family->metric_count.load() > 0) {
      return InternalError(
          "Must call MetricDelete on all dependent metrics before calling MetricFamilyDelete.");
    }
    delete family;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily* family,
                                                     TRITONSERVER_MetricKind* kind) {
  *kind = ToKind(family->family->kind());
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs** args) {
  return RunApiCall([&]() -> Status {
    *args = new TRITONSERVER_MetricArgs;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs* args,
                                                        const double* buckets,
                                                        const uint64_t buckets_count) {
  return RunApiCall([&]() -> Status {
    args->is_histogram = true;
    args->bounds.assign(buckets, buckets + buckets_count);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs* args) {
  delete args;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric** metric,
                                                   TRITONSERVER_MetricFamily* family,
                                                   const TRITONSERVER_Parameter** labels,
                                                   const uint64_t label_count,
                                                   const TRITONSERVER_MetricArgs* args) {
  return RunApiCall([&]() -> Status {
    NEREID_RETURN_IF_ERROR(CheckArgs(family->family->kind(), args));
    NEREID_ASSIGN_OR_RETURN(const auto names, ToLabels({labels, label_count}));
    NEREID_ASSIGN_OR_RETURN(
        auto series,
        family->family->Add(names, args == nullptr ? std::vector<double>() : args->bounds));
    *metric = new TRITONSERVER_Metric{family, std::move(series)};
    family->metric_count.fetch_add(1);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric** metric,
                                           TRITONSERVER_MetricFamily* family,
                                           const TRITONSERVER_Parameter** labels,
                                           const uint64_t label_count) {
  return TRITONSERVER_MetricNewWithArgs(metric, family, labels, label_count, nullptr);
}

TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric) {
  metric->family->metric_count.fetch_sub(1);
  delete metric;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricValue(TRITONSERVER_Metric* metric, double* value) {
  return RunApiCall([&]() -> Status {
    NEREID_ASSIGN_OR_RETURN(*value, metric->series->Value());
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value) {
  return RunApiCall([&] { return metric->series->Increment(value); });
}

TRITONSERVER_Error* TRITONSERVER_MetricSet(TRITONSERVER_Metric* metric, double value) {
  return RunApiCall([&] { return metric->series->Set(value); });
}

TRITONSERVER_Error* TRITONSERVER_MetricObserve(TRITONSERVER_Metric* metric, double value) {
  return RunApiCall([&] { return metric->series->Observe(value); });
}

TRITONSERVER_Error* TRITONSERVER_GetMetricKind(TRITONSERVER_Metric* metric,
                                               TRITONSERVER_MetricKind* kind) {
  *kind = ToKind(metric->series->kind());
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
