// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics_page.h"

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

TEST(MetricsPage, PrintsFamiliesWithSortedEscapedLabelsAndWholeNumbersWithoutDecimals) {
  MetricsPage page;
  page.StartFamily("nv_inference_count", "Inferences", MetricsPage::Kind::kCounter);
  page.Add({{"version", "1"}, {"model", "a\"b\n"}}, 12);
  page.StartFamily("nv_empty", "Never printed", MetricsPage::Kind::kGauge);
  page.StartFamily("nv_model_load_duration_secs", "Seconds", MetricsPage::Kind::kGauge);
  page.Add({}, 0.5);
  EXPECT_EQ(page.Text(),
            "# HELP nv_inference_count Inferences\n"
            "# TYPE nv_inference_count counter\n"
            "nv_inference_count{model=\"a\\\"b\\n\",version=\"1\"} 12\n"
            "# HELP nv_model_load_duration_secs Seconds\n"
            "# TYPE nv_model_load_duration_secs gauge\n"
            "nv_model_load_duration_secs 0.5\n");
}

}  // namespace
}  // namespace nereid::observe
