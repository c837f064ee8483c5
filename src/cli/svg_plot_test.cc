// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

size_t CountOf(std::string_view text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

Plot PlotOf(std::vector<PlotPoint> points, bool is_log) {
  Plot plot{.title = "t", .x = {.title = "x"}, .y = {.title = "y", .is_log = is_log}};
  plot.series.push_back({.name = "s", .points = std::move(points)});
  return plot;
}

// The numbers of all attributes of this name.
std::vector<double> Attributes(const std::string& svg, const std::string& name) {
  std::vector<double> values;
  const std::string mark = " " + name + "=\"";
  for (size_t at = svg.find(mark); at != svg.npos; at = svg.find(mark, at + 1)) {
    values.push_back(std::stod(svg.substr(at + mark.size())));
  }
  return values;
}

TEST(RoundTicks, LinearAxesBeginAtZeroAndHaveRoundSteps) {
  EXPECT_THAT(RoundTicks(1, 10, false), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(RoundTicks(1, 11, false), ElementsAre(0, 2.5, 5, 7.5, 10, 12.5));
  EXPECT_THAT(RoundTicks(1, 1000, false), ElementsAre(0, 200, 400, 600, 800, 1000));
}

TEST(RoundTicks, LogarithmicAxesHavePowersOfTenAndFineStepsOnlyIfTheyAreFew) {
  EXPECT_THAT(RoundTicks(3, 40, true), ElementsAre(2, 5, 10, 20, 50));
  EXPECT_THAT(RoundTicks(2, 30000, true), ElementsAre(1, 10, 100, 1000, 10000, 100000));
  EXPECT_THAT(RoundTicks(1, 1, true), ElementsAre(1, 2));
}

TEST(RoundTicks, ReachFromBelowTheLowestValueToTheHighestInRisingOrder) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-12, 12);
  for (int i = 0; i < 20000; ++i) {
    const double a = std::pow(10, exponent(random));
    const double b = i % 3 == 0 ? a : std::pow(10, exponent(random));
    const double low = std::min(a, b);
    const double high = std::max(a, b);
    for (const bool is_log : {false, true}) {
      const std::vector<double> ticks = RoundTicks(low, high, is_log);
      ASSERT_GE(ticks.size(), 2U);
      ASSERT_LE(ticks.size(), 30U);
      ASSERT_TRUE(std::ranges::is_sorted(ticks, std::less_equal<>())) << low << " " << high;
      ASSERT_LE(ticks.front(), is_log ? low * (1 + 1e-9) : 0);
      ASSERT_GE(ticks.back(), high * (1 - 1e-9));
      // Not much of the plot is empty.
      ASSERT_LE(ticks.back(), high * (is_log ? 10.001 : 1.5001));
    }
  }
}

TEST(RoundTicks, TheSmallestAndLargestNumbersHaveTicks) {
  for (const double value : {5e-324, 1e-310, 1e-300, 1e300, 1.7e308}) {
    const std::vector<double> ticks = RoundTicks(value, value, false);
    EXPECT_GE(ticks.size(), 2U) << value;
    EXPECT_LE(ticks.size(), 10U) << value;
  }
}

TEST(EscapeHtml, LeavesNoMarkup) {
  EXPECT_EQ(EscapeHtml("a<b>&\"c\" é"), "a&lt;b&gt;&amp;&quot;c&quot; é");
  EXPECT_EQ(EscapeHtml("&amp;"), "&amp;amp;");
}

TEST(PlotHtml, TextsFromOutsideAreNoMarkup) {
  const std::string evil = "</svg><script>alert(1)</script>\"";
  Plot plot = PlotOf({{.x = 1, .y = 1, .label = evil, .title = evil}}, false);
  plot.title = plot.x.title = plot.y.title = plot.limit_text = plot.series[0].name = evil;
  plot.x_limit = plot.y_limit = 1;
  plot.x.format = plot.y.format = [&](double) { return evil; };
  const std::string html = PlotHtml(plot);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(CountOf(html, "</svg>"), 1U);
  EXPECT_GE(CountOf(html, "&lt;script&gt;"), 8U);
}

TEST(PlotHtml, PointsThatCannotBeShownAreLeftOut) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<PlotPoint> points = {{.x = 1, .y = 2},        {.x = 2, .y = NAN},
                                         {.x = infinity, .y = 1}, {.x = 3, .y = -infinity},
                                         {.x = 4, .y = 0},        {.x = 5, .y = -1}};
  const std::string linear = PlotHtml(PlotOf(points, false));
  EXPECT_EQ(CountOf(linear, "<circle"), 3U);
  const std::string logarithmic = PlotHtml(PlotOf(points, true));
  EXPECT_EQ(CountOf(logarithmic, "<circle"), 1U);
  for (const std::string& html : {linear, logarithmic}) {
    EXPECT_THAT(html, Not(HasSubstr("nan")));
    EXPECT_THAT(html, Not(HasSubstr("inf")));
  }
}

TEST(PlotHtml, EverythingLiesWithinThePlotAndHigherValuesLieHigher) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> values(0, 5);
  for (int round = 0; round < 300; ++round) {
    std::vector<PlotPoint> points;
    for (int i = 0; i < 9; ++i) {
      PlotPoint point{.x = values(random), .y = values(random)};
      point.y_low = point.y / 2;
      point.y_high = point.y * 3;
      points.push_back(point);
    }
    std::ranges::sort(points, {}, &PlotPoint::y);
    Plot plot = PlotOf(points, round % 2 == 0);
    plot.x.is_log = round % 3 == 0;
    if (round % 5 == 0) plot.y_limit = values(random);
    const std::string html = PlotHtml(plot);
    const std::vector<double> heights = Attributes(html, "cy");
    ASSERT_EQ(heights.size(), points.size());
    EXPECT_TRUE(std::ranges::is_sorted(heights, std::greater<>()));
    for (const char* name : {"cy", "y1", "y2", "cx", "x1", "x2"}) {
      for (const double value : Attributes(html, name)) {
        ASSERT_GE(value, 0) << name;
        ASSERT_LE(value, name[0] == 'c' && name[1] == 'y' ? 340 : 620) << name;
      }
    }
  }
}

TEST(PlotHtml, AnEmptyPlotHasAxes) {
  const std::string html = PlotHtml({.title = "nothing", .x = {.is_log = true}, .y = {}});
  EXPECT_THAT(html, HasSubstr("grid-line"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(PlotHtml, ALabelStandsLeftOfAPointAtTheRightEdge) {
  std::vector<PlotPoint> points = {{.x = 1, .y = 1, .label = "left"},
                                   {.x = 10, .y = 1, .label = "a long label"}};
  const std::string html = PlotHtml(PlotOf(points, false));
  EXPECT_THAT(html, HasSubstr("<text class=\"label\" text-anchor=\"start\""));
  EXPECT_THAT(html, HasSubstr("<text class=\"label\" text-anchor=\"end\""));
}

TEST(PlotHtml, TheLegendHasTheSeriesWithNames) {
  Plot plot = PlotOf({{.x = 1, .y = 1}}, false);
  plot.series.push_back({.colour = PlotSeries::kPast, .is_dashed = true});
  plot.series.push_back({.name = "old", .colour = 3, .is_dashed = true});
  const std::string html = PlotHtml(plot);
  EXPECT_EQ(CountOf(html, "class=\"key\""), 2U);
  EXPECT_THAT(html, HasSubstr("border-color:var(--c4);border-top-style:dashed\"></i>old"));
}

TEST(PlotStyle, EveryColourIsThereForLightAndDarkScreens) {
  for (size_t i = 0; i <= PlotSeries::kPast; ++i) {
    const std::string html = PlotHtml({.series = {{.name = "one", .colour = i}}});
    const size_t begin =
        html.find("border-color:var(") + std::string_view("border-color:var(").size();
    const std::string name = html.substr(begin, html.find(')', begin) - begin);
    EXPECT_EQ(CountOf(PlotStyle(), name + ":#"), 2U) << name;
  }
}

}  // namespace
}  // namespace nereid::cli
