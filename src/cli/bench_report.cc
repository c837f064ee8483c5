// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/bench_tables.h"
#include "cli/format.h"
#include "cli/svg_plot.h"

namespace nereid::cli {
namespace {

// More lines than this cannot be told apart.
constexpr size_t kMaxLines = 8;

std::string Milliseconds(double ms) { return fmt::format("{:g}", ms); }
std::string RateTick(double rate) {
  return rate >= 10000 ? fmt::format("{:g}k", rate / 1000) : fmt::format("{:g}", rate);
}

std::string LabelOf(const LevelResult& level) { return fmt::format("{:g}", level.load); }

std::string TitleOf(const LevelResult& level) {
  return fmt::format("{}: {} requests/s {}, p50 {}, p99 {}", level.Title(),
                     FormatRate(level.rate.value), MarginText(level.rate),
                     TimeText(level.quantiles_us[kP50].value),
                     TimeText(level.quantiles_us[kP99].value));
}

PlotSeries CurveOf(const BenchResult& result, size_t quantile, std::string name, size_t colour) {
  PlotSeries series{.name = std::move(name), .colour = colour};
  for (const LevelResult& level : result.levels) {
    const Estimate& latency = level.quantiles_us[quantile];
    PlotPoint point{.x = level.rate.value, .y = latency.value / 1e3};
    if (std::isfinite(latency.margin)) {
      point.y_low = latency.low() / 1e3;
      point.y_high = latency.high() / 1e3;
    }
    if (quantile == kP99) point.label = LabelOf(level);
    point.title = TitleOf(level);
    series.points.push_back(std::move(point));
  }
  return series;
}

Plot LatencyAndRate(const BenchResult& result, const BenchResult* before) {
  Plot plot{.title = "Latency and throughput of each level",
            .x = {.title = "requests/s", .format = RateTick},
            .y = {.title = "latency, ms", .is_log = true, .format = Milliseconds}};
  plot.series.push_back(CurveOf(result, kP99, "p99", 1));
  plot.series.push_back(CurveOf(result, kP50, "p50", 0));
  if (before != nullptr) {
    for (const auto& [quantile, name] :
         {std::pair{kP99, "p99 before"}, std::pair{kP50, "p50 before"}}) {
      PlotSeries old = CurveOf(*before, quantile, name, quantile == kP99 ? 1 : 0);
      old.is_dashed = true;
      for (PlotPoint& point : old.points) point.label.clear();
      plot.series.insert(plot.series.begin(), std::move(old));
    }
  }
  return plot;
}

// Quantiles, at places that leave as much room for each further nine.
Plot LatencyByShare(const BenchResult& result) {
  Plot plot{.title = "Latency by share of requests",
            .x = {.title = "share of requests that were at least as fast",
                  .is_log = true,
                  .format = [](double x) { return fmt::format("{:g} %", 100 - 100 / x); },
                  .ticks = {2, 10, 20, 100, 1000}},
            .y = {.title = "latency, ms", .is_log = true, .format = Milliseconds}};
  for (size_t i = 0; i < std::min(result.levels.size(), kMaxLines); ++i) {
    const LevelResult& level = result.levels[i];
    PlotSeries series{.name = level.Title(), .colour = i};
    for (size_t k = 0; k < level.quantiles_us.size(); ++k) {
      const double us = level.quantiles_us[k].value;
      series.points.push_back({.x = 1 / (1 - kBenchQuantiles[k].share),
                               .y = us / 1e3,
                               .title = fmt::format("{}: {} {}", level.Title(),
                                                    kBenchQuantiles[k].name, TimeText(us))});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

Plot OverTime(const BenchResult& result, std::string title, double BenchMoment::* value,
              double divisor, std::string unit) {
  Plot plot{.title = std::move(title),
            .x = {.title = "interval; the rounds follow each other"},
            .y = {.title = std::move(unit), .format = RateTick}};
  size_t count = 1;
  for (const LevelResult& level : result.levels) count = std::max(count, level.moments.size());
  const size_t step = (count + kPlotTicks - 1) / kPlotTicks;
  for (size_t i = 0; i < count + step; i += step) plot.x.ticks.push_back(static_cast<double>(i));
  for (size_t i = 0; i < std::min(result.levels.size(), kMaxLines); ++i) {
    const LevelResult& level = result.levels[i];
    PlotSeries series{.name = level.Title(), .colour = i};
    for (size_t k = 0; k < level.moments.size(); ++k) {
      const BenchMoment& moment = level.moments[k];
      series.points.push_back(
          {.x = static_cast<double>(k + 1),
           .y = moment.*value / divisor,
           .title = fmt::format("{}, round {}: {} requests/s, p99 {}", level.Title(), moment.round,
                                FormatRate(moment.rate), TimeText(moment.p99_us))});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

// The change of a quantity at each level, with its margin.
Plot Changes(const std::vector<LevelComparison>& levels) {
  Plot plot{.title = "Compared with the earlier run",
            .x = {.title = "level of load",
                  .format =
                      [&levels](double x) {
                        const auto index = static_cast<size_t>(x - 1);
                        return x >= 1 && index < levels.size() ? LabelOf(*levels[index].after) : "";
                      }},
            .y = {.title = "after / before", .format = Milliseconds},
            .y_limit = 1,
            .limit_text = "as before"};
  for (size_t i = 0; i <= levels.size() + 1; ++i) plot.x.ticks.push_back(static_cast<double>(i));
  const auto add = [&](std::string name, size_t colour, double shift,
                       Difference LevelComparison::* difference) {
    PlotSeries series{.name = std::move(name), .colour = colour, .has_line = false};
    for (size_t i = 0; i < levels.size(); ++i) {
      const Difference& one = levels[i].*difference;
      const bool is_known = std::isfinite(one.margin);
      series.points.push_back(
          {.x = static_cast<double>(i + 1) + shift,
           .y = 1 + one.change,
           .y_low = is_known ? std::max(1 + one.change - one.margin, 0.0) : 0,
           .y_high = is_known ? 1 + one.change + one.margin : 0,
           .title = fmt::format("{}: {}", levels[i].after->Title(), ChangeText(one))});
    }
    plot.series.push_back(std::move(series));
  };
  add("requests/s", 2, -0.15, &LevelComparison::rate);
  add("p50", 0, 0, &LevelComparison::p50);
  add("p99", 1, 0.15, &LevelComparison::p99);
  return plot;
}

std::string Facts(const BenchResult& result) {
  std::string text = fmt::format(
      "<p>{}{} over {} &middot; {} &middot; batch size {} &middot; inputs {}</p>"
      "<p class=\"soft\">{} at {} &middot; {} &middot; {}</p>\n",
      EscapeHtml(result.model), result.version.empty() ? "" : " " + EscapeHtml(result.version),
      EscapeHtml(result.protocol),
      result.distribution.empty()
          ? "closed loop"
          : fmt::format("open loop, {} arrivals", EscapeHtml(result.distribution)),
      result.batch_size, EscapeHtml(result.inputs), EscapeHtml(result.server),
      EscapeHtml(result.url), EscapeHtml(result.machine), EscapeHtml(result.started));
  for (const std::string& warning : BenchWarnings(result)) {
    text += fmt::format("<p class=\"note\">{}</p>\n", EscapeHtml(warning));
  }
  return text;
}

std::string_view ClassOf(Style style) {
  switch (style) {
    case Style::kGood:
      return "good";
    case Style::kBad:
      return "bad";
    case Style::kDim:
      return "soft";
    default:
      return "";
  }
}

}  // namespace

std::string HtmlTable(const Table& table, std::string_view label) {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table><tr>",
      EscapeHtml(label));
  for (const Column& column : table.columns()) {
    out += fmt::format("<th{}>{}</th>", column.is_number ? "" : " class=\"left\"",
                       EscapeHtml(column.title));
  }
  out += "</tr>\n";
  for (const std::vector<Cell>& row : table.rows()) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      out += fmt::format("<td class=\"{} {}\">{}</td>", ClassOf(row[i].style),
                         table.columns()[i].is_number ? "number" : "left wide",
                         EscapeHtml(row[i].text));
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string HtmlPage(std::string_view heading, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>{0}</title><style>{1}</style></head>\n<body><main><h1>{0}</h1>\n{2}</main></body></"
      "html>\n",
      EscapeHtml(heading), PlotStyle(), body);
}

std::string BenchReport(const BenchResult& result, const BenchResult* before) {
  std::string body = Facts(result) + HtmlTable(LevelTable(result), "Levels");
  body +=
      "<p class=\"soft\">QUEUE, COMPUTE and BATCH are the server's own averages of a request's "
      "time "
      "in the queue, an execution's time, and the inferences in an execution.</p>\n";
  if (result.failed() > 0) {
    body += "<h2>Errors</h2>\n" + HtmlTable(ErrorTable(result), "Errors");
  }
  std::vector<LevelComparison> levels;
  if (before != nullptr) {
    levels = CompareResults(*before, result);
    body +=
        fmt::format("<h2>Compared with the run of {}</h2>\n<p>{}</p>\n",
                    EscapeHtml(before->started), EscapeHtml(VerdictOf(*before, result, levels)));
    if (!levels.empty()) body += HtmlTable(ComparisonTable(levels), "Comparison");
  }
  body += "<div class=\"grid\">\n" + PlotHtml(LatencyAndRate(result, before));
  if (!levels.empty()) body += PlotHtml(Changes(levels));
  body += PlotHtml(LatencyByShare(result));
  body += PlotHtml(
      OverTime(result, "Throughput of each interval", &BenchMoment::rate, 1, "requests/s"));
  body += PlotHtml(OverTime(result, "p99 of each interval", &BenchMoment::p99_us, 1e3, "ms"));
  return HtmlPage(fmt::format("nereid bench {}", result.model), body + "</div>\n");
}

}  // namespace nereid::cli
