// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cli/plot_palette.h"

namespace nereid::cli {
namespace {

// The size of a plot in units of its own, and of the space around its lines.
constexpr double kWidth = 620;
constexpr double kHeight = 340;
constexpr double kLeft = 86;
constexpr double kRight = 34;
constexpr double kTop = 16;
constexpr double kBottom = 60;
// The width of a letter of a label, about.
constexpr double kLetter = 7.6;

// On a narrow screen a plot scrolls, so that its letters can be read.
constexpr std::string_view kStyle = R"(
body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1080px;padding:24px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:17px;margin:28px 0 8px}
p{margin:6px 0}.soft{color:var(--muted)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
.scroll{overflow-x:auto}
th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--muted);font-weight:500;font-size:13px}
th:first-child,td:first-child,.left{text-align:left}
td.wide{white-space:normal}
.good{color:var(--good);font-weight:600}.bad{color:var(--bad);font-weight:600}
.note{border-left:3px solid var(--c3);padding:2px 12px;margin:8px 0}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,470px),1fr));gap:20px;margin-top:20px}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px}
figcaption{font-weight:600;font-size:15px}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;color:var(--muted);margin:4px 0}
.key{display:inline-block;width:14px;height:0;border-top:3px solid;vertical-align:middle;margin-right:6px}
svg{display:block;width:100%;min-width:460px;max-width:760px;height:auto}
svg text{font:15px system-ui,sans-serif;fill:var(--muted)}
svg .label{fill:var(--text)}
svg .grid-line{stroke:var(--line)}
svg .limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:6 4}
svg .limit-text{fill:var(--bad)}
svg .line{fill:none;stroke-width:2;stroke-linejoin:round}
pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;overflow-x:auto}
)";

std::string ColourOf(const PlotSeries& series) {
  if (series.colour == PlotSeries::kPast) return "var(--past)";
  return fmt::format("var(--c{})", series.colour + 1);
}

// The colours as variables, for one scheme.
std::string Variables(std::string_view PlotColour::* scheme) {
  std::string out;
  for (const PlotColour& colour : kPlotPalette) {
    out += fmt::format("--{}:{};", colour.name, colour.*scheme);
  }
  return out;
}

// The values of one axis, and where they lie in the plot.
class Scale {
 public:
  Scale(const PlotAxis& axis, double low, double high, double from, double to)
      : axis_(axis),
        ticks_(axis.ticks.empty() ? RoundTicks(low, high, axis.is_log) : axis.ticks),
        from_(from),
        to_(to) {}

  const std::vector<double>& ticks() const { return ticks_; }
  std::string TextOf(double value) const {
    return axis_.format ? axis_.format(value) : fmt::format("{:g}", value);
  }
  bool CanShow(double value) const { return std::isfinite(value) && (!axis_.is_log || value > 0); }
  double At(double value) const {
    const double low = Map(ticks_.front());
    const double high = Map(ticks_.back());
    const double share = high > low ? (Map(value) - low) / (high - low) : 0;
    return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
  }

 private:
  double Map(double value) const { return axis_.is_log ? std::log10(value) : value; }

  const PlotAxis& axis_;
  std::vector<double> ticks_;
  double from_;
  double to_;
};

Scale ScaleOf(const Plot& plot, const PlotAxis& axis, double PlotPoint::* value,
              const std::optional<double>& limit, double from, double to) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  const auto include = [&](double one) {
    if (!std::isfinite(one) || one <= 0) return;
    low = std::min(low, one);
    high = std::max(high, one);
  };
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) include(point.*value);
  }
  if (limit) include(*limit);
  if (high == 0) low = high = 1;
  return {axis, low, high, from, to};
}

// Draws one plot.
class Drawing {
 public:
  explicit Drawing(const Plot& plot)
      : plot_(plot),
        x_(ScaleOf(plot, plot.x, &PlotPoint::x, plot.x_limit, kLeft, kWidth - kRight)),
        y_(ScaleOf(plot, plot.y, &PlotPoint::y, plot.y_limit, kHeight - kBottom, kTop)) {}

  std::string Draw() {
    out_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kWidth,
                       kHeight, EscapeHtml(plot_.title));
    DrawAxes();
    DrawLimits();
    for (const PlotSeries& series : plot_.series) DrawSeries(series);
    return std::move(out_) + "</svg>";
  }

 private:
  void Line(std::string_view kind, double x1, double y1, double x2, double y2) {
    out_ +=
        fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                    kind, x1, y1, x2, y2);
  }
  void Text(std::string_view kind, std::string_view anchor, double x, double y,
            std::string_view text) {
    out_ += fmt::format("<text class=\"{}\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
                        kind, anchor, x, y, EscapeHtml(text));
  }

  void DrawAxes() {
    for (const double tick : y_.ticks()) {
      Line("grid-line", kLeft, y_.At(tick), kWidth - kRight, y_.At(tick));
      Text("tick", "end", kLeft - 8, y_.At(tick) + 4, y_.TextOf(tick));
    }
    for (const double tick : x_.ticks()) {
      Line("grid-line", x_.At(tick), kHeight - kBottom, x_.At(tick), kHeight - kBottom + 5);
      Text("tick", "middle", x_.At(tick), kHeight - kBottom + 23, x_.TextOf(tick));
    }
    Text("tick", "middle", (kLeft + kWidth - kRight) / 2, kHeight - 8, plot_.x.title);
    out_ += fmt::format(
        "<text text-anchor=\"middle\" transform=\"rotate(-90)\" x=\"{:.1f}\" y=\"18\">{}</text>",
        -(kTop + kHeight - kBottom) / 2, EscapeHtml(plot_.y.title));
  }

  void DrawLimits() {
    if (plot_.y_limit) {
      const double y = y_.At(*plot_.y_limit);
      Line("limit", kLeft, y, kWidth - kRight, y);
      Text("limit-text", "start", kLeft + 6, y - 5, plot_.limit_text);
    }
    if (plot_.x_limit) {
      const double x = x_.At(*plot_.x_limit);
      Line("limit", x, kTop, x, kHeight - kBottom);
      Text("limit-text", "end", x - 5, kTop + 12, plot_.limit_text);
    }
  }

  bool IsShown(const PlotPoint& point) const { return x_.CanShow(point.x) && y_.CanShow(point.y); }

  void DrawSeries(const PlotSeries& series) {
    const std::string colour = ColourOf(series);
    if (series.has_line) {
      std::string path;
      for (const PlotPoint& point : series.points) {
        if (!IsShown(point)) continue;
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_.At(point.x),
                            y_.At(point.y));
      }
      out_ += fmt::format("<path class=\"line\" style=\"stroke:{}\"{} d=\"{}\"/>", colour,
                          series.is_dashed ? " stroke-dasharray=\"5 4\"" : "", path);
    }
    for (const PlotPoint& point : series.points) {
      if (IsShown(point)) DrawPoint(series, point, colour);
    }
  }

  void DrawPoint(const PlotSeries& series, const PlotPoint& point, const std::string& colour) {
    const double x = x_.At(point.x);
    const double y = y_.At(point.y);
    out_ += fmt::format("<g style=\"fill:{0};stroke:{0}\">", colour);
    if (point.y_low < point.y_high && y_.CanShow(point.y_low) && y_.CanShow(point.y_high)) {
      Line("margin", x, y_.At(point.y_low), x, y_.At(point.y_high));
    }
    out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\">", x, y,
                        series.is_large ? 6.5 : 3.5);
    if (!point.title.empty()) out_ += fmt::format("<title>{}</title>", EscapeHtml(point.title));
    out_ += "</circle></g>";
    if (point.label.empty()) return;
    const double length = static_cast<double>(point.label.size()) * kLetter + 8;
    const bool fits = x + length < kWidth;
    Text("label", fits ? "start" : "end", fits ? x + 8 : x - 8, y - 7, point.label);
  }

  const Plot& plot_;
  const Scale x_;
  const Scale y_;
  std::string out_;
};

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::vector<double> RoundTicks(double low, double high, bool is_log) {
  std::vector<double> ticks;
  if (is_log) {
    const auto first = static_cast<int>(std::floor(std::log10(low)));
    const auto last = static_cast<int>(std::ceil(std::log10(high)));
    // Few powers of ten have round numbers between them.
    const bool is_fine = last - first <= 2;
    for (int power = first; power <= std::max(last, first + 1); ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10, power);
        if (digit > 1 && !is_fine) continue;
        // No more than one tick lies below all values, and one above.
        if (ticks.size() == 1 && tick <= low) ticks.clear();
        ticks.push_back(tick);
        if (tick >= high && ticks.size() > 1) return ticks;
      }
    }
    return ticks;
  }
  const double step = high / static_cast<double>(kPlotTicks - 1);
  const double power = std::pow(10, std::floor(std::log10(step)));
  // So near to zero, there are no round numbers between.
  if (!std::isnormal(power)) return {0, high};
  double round = 10 * power;
  for (const double digit : {1.0, 2.0, 2.5, 5.0}) {
    if (digit * power >= step * 0.999) {
      round = digit * power;
      break;
    }
  }
  const auto count = static_cast<size_t>(std::ceil(high / round - 1e-9));
  for (size_t i = 0; i <= count; ++i) ticks.push_back(static_cast<double>(i) * round);
  return ticks;
}

std::string PlotHtml(const Plot& plot) {
  std::string legend;
  for (const PlotSeries& series : plot.series) {
    if (series.name.empty()) continue;
    legend += fmt::format(
        "<span><i class=\"key\" style=\"border-color:{};border-top-style:{}\"></i>{}</span>",
        ColourOf(series), series.is_dashed ? "dashed" : "solid", EscapeHtml(series.name));
  }
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><div class=\"legend\">{1}</div><div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"{0}\">{2}</div></figure>\n",
      EscapeHtml(plot.title), legend, Drawing(plot).Draw());
}

std::string PlotStyle() {
  return fmt::format(
      ":root{{color-scheme:light dark;{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}{}",
      Variables(&PlotColour::light), Variables(&PlotColour::dark), kStyle);
}

}  // namespace nereid::cli
