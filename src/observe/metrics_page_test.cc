// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics_page.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

using Kind = MetricsPage::Kind;

TEST(MetricsPage, PrintsFamiliesWithSortedEscapedLabelsAndWholeNumbersWithoutDecimals) {
  MetricsPage page;
  page.StartFamily("nv_inference_count", "Inferences", Kind::kCounter);
  page.Add(RenderLabels({{"version", "1"}, {"model", "a\"b\n"}}), 12);
  page.StartFamily("nv_empty", "Never printed", Kind::kGauge);
  page.StartFamily("nv_model_load_duration_secs", "Seconds", Kind::kGauge);
  page.Add("", 0.5);
  page.Add("", std::nan(""));
  EXPECT_EQ(page.text(),
            "# HELP nv_inference_count Inferences\n"
            "# TYPE nv_inference_count counter\n"
            "nv_inference_count{model=\"a\\\"b\\n\",version=\"1\"} 12\n"
            "# HELP nv_model_load_duration_secs Seconds\n"
            "# TYPE nv_model_load_duration_secs gauge\n"
            "nv_model_load_duration_secs 0.5\n"
            "nv_model_load_duration_secs NaN\n");
}

TEST(MetricsPage, PrintsHistogramsCumulatively) {
  MetricsPage page;
  page.StartFamily("h", "Help", Kind::kHistogram);
  const std::array<double, 2> bounds = {0.5, 10};
  const std::array<uint64_t, 3> counts = {1, 2, 4};
  page.AddHistogram("m=\"x\"", {bounds, counts, 99.5});
  EXPECT_EQ(page.text(),
            "# HELP h Help\n"
            "# TYPE h histogram\n"
            "h_count{m=\"x\"} 7\n"
            "h_sum{m=\"x\"} 99.5\n"
            "h_bucket{m=\"x\",le=\"0.5\"} 1\n"
            "h_bucket{m=\"x\",le=\"10\"} 3\n"
            "h_bucket{m=\"x\",le=\"+Inf\"} 7\n");
}

TEST(MetricsPage, PrintsSummaries) {
  MetricsPage page;
  page.StartFamily("s", "Help", Kind::kSummary);
  page.AddSummary("", {{{0.5, 3}, {0.99, 7}}, 4, 20});
  EXPECT_EQ(page.text(),
            "# HELP s Help\n"
            "# TYPE s summary\n"
            "s_count 4\n"
            "s_sum 20\n"
            "s{quantile=\"0.5\"} 3\n"
            "s{quantile=\"0.99\"} 7\n");
}

}  // namespace
}  // namespace nereid::observe
