// SPDX-License-Identifier: Apache-2.0
// Plots for reports, as SVG inside HTML. Colours are variables of CSS, which the page sets for
// light and dark screens (PlotStyle).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::cli {

// About so many ticks fit beside an axis.
inline constexpr size_t kPlotTicks = 6;

// A point, and the text that is shown when a pointer is above it.
struct PlotPoint {
  double x = 0;
  double y = 0;
  double y_low = 0;  // the ends of a bar of uncertainty; equal: none
  double y_high = 0;
  std::string label;  // beside the point; may be empty
  std::string title;
};

// Points of one colour.
struct PlotSeries {
  std::string name;      // in the legend; empty: not there
  size_t colour = 0;     // the number of a colour; kPast for what it is compared with
  bool has_line = true;  // through the points, in order
  bool is_dashed = false;
  bool is_large = false;  // points that stand out
  std::vector<PlotPoint> points;

  static constexpr size_t kPast = 8;
};

// An axis begins at zero, or is logarithmic.
struct PlotAxis {
  std::string title;
  bool is_log = false;
  // Writes a value at a tick.
  std::function<std::string(double)> format;
  // Places of the ticks, and so the ends of the axis; empty: chosen by the values.
  std::vector<double> ticks;
};

struct Plot {
  std::string title;  // for people who cannot see the plot as well
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
  std::optional<double> x_limit;  // a line across the plot
  std::optional<double> y_limit;
  std::string limit_text;
};

// Returns the plot with its title and its legend. Points that a logarithmic axis cannot show, and
// those that are not finite, are left out.
std::string PlotHtml(const Plot& plot);

// The style sheet of a page with plots: colours, texts and tables.
std::string PlotStyle();

// Returns the text with what HTML would take for markup replaced.
std::string EscapeHtml(std::string_view text);

// Returns ticks at round numbers from zero (or, if the axis is logarithmic, from below `low`) to at
// least `high`.
std::vector<double> RoundTicks(double low, double high, bool is_log);

}  // namespace nereid::cli
