// SPDX-License-Identifier: Apache-2.0
// Metrics of plug-ins, as the C API makes them.
#include <array>
#include <memory>

#include <gtest/gtest.h>

#include "abi_objects/error.h"
#include "observe/custom_metrics.h"
#include "triton/core/tritonserver.h"

namespace nereid::abi_objects {
namespace {

std::string Page() {
  observe::MetricsPage page;
  observe::AddCustomMetrics(page);
  return page.Take();
}

// "" for success.
std::string Why(TRITONSERVER_Error* error) {
  const base::Status status = TakeStatus(error);
  return status.ok() ? "" : std::string(status.message());
}

struct Deleter {
  void operator()(TRITONSERVER_MetricFamily* family) const {
    EXPECT_EQ(Why(TRITONSERVER_MetricFamilyDelete(family)), "");
  }
  void operator()(TRITONSERVER_Metric* metric) const {
    EXPECT_EQ(Why(TRITONSERVER_MetricDelete(metric)), "");
  }
  void operator()(TRITONSERVER_MetricArgs* args) const {
    EXPECT_EQ(Why(TRITONSERVER_MetricArgsDelete(args)), "");
  }
  void operator()(TRITONSERVER_Parameter* parameter) const {
    TRITONSERVER_ParameterDelete(parameter);
  }
};
using Family = std::unique_ptr<TRITONSERVER_MetricFamily, Deleter>;
using Metric = std::unique_ptr<TRITONSERVER_Metric, Deleter>;
using Args = std::unique_ptr<TRITONSERVER_MetricArgs, Deleter>;
using Parameter = std::unique_ptr<TRITONSERVER_Parameter, Deleter>;

Family NewFamily(TRITONSERVER_MetricKind kind, const char* name) {
  TRITONSERVER_MetricFamily* family = nullptr;
  EXPECT_EQ(Why(TRITONSERVER_MetricFamilyNew(&family, kind, name, "Help")), "");
  return Family(family);
}

Metric NewMetric(const Family& family) {
  TRITONSERVER_Metric* metric = nullptr;
  EXPECT_EQ(Why(TRITONSERVER_MetricNew(&metric, family.get(), nullptr, 0)), "");
  return Metric(metric);
}

TEST(MetricsOfPlugIns, StandOnThePageWithTheirLabels) {
  const Family family = NewFamily(TRITONSERVER_METRIC_KIND_COUNTER, "plugin_total");
  const Parameter first(TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, "a"));
  const Parameter again(TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, "m"));
  std::array<const TRITONSERVER_Parameter*, 2> labels = {first.get(), again.get()};
  TRITONSERVER_Metric* made = nullptr;
  ASSERT_EQ(Why(TRITONSERVER_MetricNew(&made, family.get(), labels.data(), labels.size())), "");
  const Metric metric(made);
  EXPECT_EQ(Why(TRITONSERVER_MetricIncrement(metric.get(), 2)), "");
  double value = 0;
  EXPECT_EQ(Why(TRITONSERVER_MetricValue(metric.get(), &value)), "");
  EXPECT_EQ(value, 2);
  // The last of two labels with one name applies.
  EXPECT_EQ(Page(),
            "# HELP plugin_total Help\n# TYPE plugin_total counter\nplugin_total{model=\"m\"} 2\n");
}

TEST(MetricsOfPlugIns, HaveLabelsThatAreTexts) {
  const Family family = NewFamily(TRITONSERVER_METRIC_KIND_GAUGE, "plugin_gauge");
  const int64_t number = 1;
  const Parameter label(TRITONSERVER_ParameterNew("n", TRITONSERVER_PARAMETER_INT, &number));
  const TRITONSERVER_Parameter* labels = label.get();
  TRITONSERVER_Metric* metric = nullptr;
  EXPECT_EQ(Why(TRITONSERVER_MetricNew(&metric, family.get(), &labels, 1)),
            "Parameter [n] must have a type of TRITONSERVER_PARAMETER_STRING to be added as a "
            "label.");
  EXPECT_EQ(metric, nullptr);
}

TEST(MetricsOfPlugIns, OutliveNoFamily) {
  Family family = NewFamily(TRITONSERVER_METRIC_KIND_GAUGE, "plugin_gauge");
  Metric metric = NewMetric(family);
  EXPECT_EQ(Why(TRITONSERVER_MetricFamilyDelete(family.get())),
            "Must call MetricDelete on all dependent metrics before calling MetricFamilyDelete.");
  EXPECT_EQ(Why(TRITONSERVER_MetricSet(metric.get(), 3)), "");
  metric.reset();
  family.reset();
  EXPECT_EQ(Page(), "");
}

TEST(MetricsOfPlugIns, KnowTheirKind) {
  for (const auto kind : {TRITONSERVER_METRIC_KIND_COUNTER, TRITONSERVER_METRIC_KIND_GAUGE}) {
    const Family family = NewFamily(kind, "plugin_kind");
    const Metric metric = NewMetric(family);
    TRITONSERVER_MetricKind of_family{}, of_metric{};
    EXPECT_EQ(Why(TRITONSERVER_GetMetricFamilyKind(family.get(), &of_family)), "");
    EXPECT_EQ(Why(TRITONSERVER_GetMetricKind(metric.get(), &of_metric)), "");
    EXPECT_EQ(of_family, kind);
    EXPECT_EQ(of_metric, kind);
  }
  TRITONSERVER_MetricFamily* family = nullptr;
  EXPECT_EQ(Why(TRITONSERVER_MetricFamilyNew(&family, static_cast<TRITONSERVER_MetricKind>(9), "n",
                                             "Help")),
            "Unsupported kind passed to MetricFamily constructor.");
}

TEST(HistogramsOfPlugIns, NeedTheirBuckets) {
  const Family family = NewFamily(TRITONSERVER_METRIC_KIND_HISTOGRAM, "plugin_seconds");
  TRITONSERVER_Metric* made = nullptr;
  EXPECT_EQ(Why(TRITONSERVER_MetricNew(&made, family.get(), nullptr, 0)),
            "Bucket boundaries not found in Metric args.");
  TRITONSERVER_MetricArgs* raw = nullptr;
  ASSERT_EQ(Why(TRITONSERVER_MetricArgsNew(&raw)), "");
  const Args args(raw);
  const auto make = [&] {
    return Why(TRITONSERVER_MetricNewWithArgs(&made, family.get(), nullptr, 0, args.get()));
  };
  EXPECT_EQ(make(), "Metric args not set to histogram kind.");
  const double falling[] = {2, 1};
  EXPECT_EQ(Why(TRITONSERVER_MetricArgsSetHistogram(args.get(), falling, 2)), "");
  EXPECT_EQ(make(), "Bucket Boundaries must be strictly sorted");
  const double bounds[] = {1, 2};
  EXPECT_EQ(Why(TRITONSERVER_MetricArgsSetHistogram(args.get(), bounds, 2)), "");
  ASSERT_EQ(make(), "");
  const Metric metric(made);
  EXPECT_EQ(Why(TRITONSERVER_MetricObserve(metric.get(), 1.5)), "");
  EXPECT_EQ(Why(TRITONSERVER_MetricSet(metric.get(), 1)),
            "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Set");
  EXPECT_NE(Page().find("plugin_seconds_bucket{le=\"2\"} 1\n"), std::string::npos) << Page();
}

TEST(CountersOfPlugIns, TakeNoBuckets) {
  const Family family = NewFamily(TRITONSERVER_METRIC_KIND_COUNTER, "plugin_total");
  TRITONSERVER_MetricArgs* raw = nullptr;
  ASSERT_EQ(Why(TRITONSERVER_MetricArgsNew(&raw)), "");
  const Args args(raw);
  TRITONSERVER_Metric* metric = nullptr;
  EXPECT_EQ(Why(TRITONSERVER_MetricNewWithArgs(&metric, family.get(), nullptr, 0, args.get())),
            "Unexpected args found in counter Metric constructor.");
}

}  // namespace
}  // namespace nereid::abi_objects
