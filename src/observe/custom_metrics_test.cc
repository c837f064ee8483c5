// SPDX-License-Identifier: Apache-2.0
#include "observe/custom_metrics.h"

#include <gtest/gtest.h>

#include <limits>

namespace nereid::observe {
namespace {

using base::StatusCode;

std::string Page() {
  MetricsPage page;
  AddCustomMetrics(page);
  return page.Take();
}

TEST(CustomMetrics, EqualLabelsAreOneSeriesAsLongAsItHasAHolder) {
  auto family = *CustomFamily::Create(MetricKind::kCounter, "custom_total", "Help");
  auto first = *family->Add({{"b", "2"}, {"a", "1"}}, {});
  auto second = *family->Add({{"a", "1"}, {"b", "2"}}, {});
  EXPECT_EQ(first, second);
  EXPECT_TRUE(first->Increment(2).ok());
  EXPECT_TRUE(second->Increment(1.5).ok());
  EXPECT_EQ(
      Page(),
      "# HELP custom_total Help\n# TYPE custom_total counter\ncustom_total{a=\"1\",b=\"2\"} 3.5\n");
  first.reset();
  second.reset();
  EXPECT_EQ(Page(), "");
}

TEST(CustomMetrics, TheTextOfAFamilyIsItsPartOfThePage) {
  EXPECT_EQ(CustomFamilyText("wanted"), "");
  auto wanted = *CustomFamily::Create(MetricKind::kGauge, "wanted", "Help");
  const auto other = *CustomFamily::Create(MetricKind::kGauge, "wanted_not", "Help");
  const auto series = *wanted->Add({{"a", "1"}}, {});
  const auto others = *other->Add({{"a", "1"}}, {});
  EXPECT_TRUE(series->Set(2).ok());
  EXPECT_EQ(CustomFamilyText("wanted"),
            "# HELP wanted Help\n# TYPE wanted gauge\nwanted{a=\"1\"} 2\n");
  EXPECT_NE(Page().find(CustomFamilyText("wanted")), std::string::npos);
  wanted.reset();
  EXPECT_EQ(CustomFamilyText("wanted"), "");
}

TEST(CustomMetrics, FamiliesOfOneNameAreOneAndHaveOneKind) {
  const auto first = *CustomFamily::Create(MetricKind::kGauge, "custom_gauge", "Help");
  EXPECT_EQ(first, *CustomFamily::Create(MetricKind::kGauge, "custom_gauge", "Other"));
  EXPECT_EQ(CustomFamily::Create(MetricKind::kCounter, "custom_gauge", "Help").status().code(),
            StatusCode::kInvalidArgument);
}

TEST(CustomMetrics, EachKindSupportsItsOwnOperations) {
  auto counter = *(*CustomFamily::Create(MetricKind::kCounter, "c", ""))->Add({}, {});
  EXPECT_EQ(counter->Increment(-1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(counter->Set(1).code(), StatusCode::kUnsupported);
  EXPECT_EQ(counter->Observe(1).code(), StatusCode::kUnsupported);
  auto gauge = *(*CustomFamily::Create(MetricKind::kGauge, "g", ""))->Add({}, {});
  EXPECT_TRUE(gauge->Set(5).ok());
  EXPECT_TRUE(gauge->Increment(-7).ok());
  EXPECT_EQ(*gauge->Value(), -2);
  const auto family = *CustomFamily::Create(MetricKind::kHistogram, "h", "Help");
  auto histogram = *family->Add({}, {1, 2});
  EXPECT_EQ(histogram->Value().status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(histogram->Increment(1).code(), StatusCode::kUnsupported);
  for (const double value : {0.5, 1.0, 1.5, 7.0}) EXPECT_TRUE(histogram->Observe(value).ok());
  MetricsPage page;
  family->AddTo(page);
  EXPECT_EQ(page.text(),
            "# HELP h Help\n# TYPE h histogram\nh_count 4\nh_sum 10\nh_bucket{le=\"1\"} 2\n"
            "h_bucket{le=\"2\"} 3\nh_bucket{le=\"+Inf\"} 4\n");
}

TEST(CustomMetrics, NamesAndBoundsAreChecked) {
  for (const char* name : {"", "1x", "a b", "a\n", "a-b"}) {
    EXPECT_FALSE(CustomFamily::Create(MetricKind::kGauge, name, "").ok()) << name;
  }
  const auto family = *CustomFamily::Create(MetricKind::kHistogram, "a:b_1", "");
  EXPECT_FALSE(family->Add({{"le", "1"}}, {1}).ok());
  EXPECT_FALSE(family->Add({{"a\"b", "1"}}, {1}).ok());
  EXPECT_FALSE(family->Add({}, {2, 1}).ok());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(family->Add({}, {1, kNan}).ok());
  EXPECT_FALSE(family->Add({}, {1, std::numeric_limits<double>::infinity()}).ok());
  const auto counter = *(*CustomFamily::Create(MetricKind::kCounter, "counted", ""))->Add({}, {});
  EXPECT_FALSE(counter->Increment(kNan).ok());
}

TEST(CustomMetrics, AFamilyWithANameOfTheServersIsLeftOut) {
  const auto family = *CustomFamily::Create(MetricKind::kGauge, "nv_taken", "Help");
  const auto gauge = *family->Add({}, {});
  MetricsPage page;
  page.StartFamily("nv_taken", "The server's", MetricsPage::Kind::kCounter);
  page.Add("", 3);
  AddCustomMetrics(page);
  EXPECT_EQ(page.text(), "# HELP nv_taken The server's\n# TYPE nv_taken counter\nnv_taken 3\n");
}

}  // namespace
}  // namespace nereid::observe
