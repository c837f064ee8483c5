// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_tables.h"

#include <cmath>

#include <fmt/format.h>

#include "cli/format.h"

namespace nereid::cli {
namespace {

// From this on, the load generator has hardly any time left to wait for the server.
constexpr double kBusy = 0.9;
// With fewer requests, the slowest of a hundred is a matter of luck.
constexpr uint64_t kEnoughForP99 = 300;
// A rate that was missed by more than this was too high for the server.
constexpr double kRateReached = 0.97;

Cell VerdictCell(const Difference& difference, bool is_higher_better) {
  if (difference.verdict == Verdict::kNoise) return {"noise", Style::kDim};
  const bool is_better = (difference.verdict == Verdict::kHigher) == is_higher_better;
  return is_better ? Cell("better", Style::kGood) : Cell("worse", Style::kBad);
}

}  // namespace

std::string TimeText(double us) { return us > 0 ? FormatNanoseconds(us * 1e3) : "-"; }

std::string MarginText(const Estimate& estimate) {
  if (!std::isfinite(estimate.margin) || estimate.value <= 0) return "-";
  return fmt::format("± {:.1f} %", estimate.margin / estimate.value * 100);
}

std::string ChangeText(const Difference& difference) {
  if (!std::isfinite(difference.margin)) return fmt::format("{:+.1f} %", difference.change * 100);
  // A larger margin says nothing more.
  constexpr double kMaxMargin = 10;
  if (difference.margin > kMaxMargin) {
    return fmt::format("{:+.1f} % ± over 1000 %", difference.change * 100);
  }
  return fmt::format("{:+.1f} % ± {:.1f} %", difference.change * 100, difference.margin * 100);
}

Table LevelTable(const BenchResult& result) {
  Table table({{.title = "LOAD"},
               {.title = "REQ/S", .is_number = true},
               {.title = "95 % SURE", .is_number = true},
               {.title = "P50", .is_number = true},
               {.title = "P90", .is_number = true},
               {.title = "P95", .is_number = true},
               {.title = "P99", .is_number = true},
               {.title = "ERRORS", .is_number = true},
               {.title = "QUEUE", .is_number = true},
               {.title = "COMPUTE", .is_number = true},
               {.title = "BATCH", .is_number = true}});
  for (const LevelResult& level : result.levels) {
    const uint64_t failed = level.failed();
    table.Add({level.Title(),
               FormatRate(level.rate.value),
               MarginText(level.rate),
               TimeText(level.quantiles_us[0].value),
               TimeText(level.quantiles_us[1].value),
               TimeText(level.quantiles_us[2].value),
               TimeText(level.quantiles_us[3].value),
               {fmt::format("{}", failed), failed > 0 ? Style::kBad : Style::kPlain},
               level.server ? TimeText(level.server->queue_us) : "-",
               level.server ? TimeText(level.server->compute_us) : "-",
               level.server ? FormatRate(level.server->batch) : "-"});
  }
  return table;
}

Table ErrorTable(const BenchResult& result) {
  Table table({{.title = "LOAD"}, {.title = "COUNT", .is_number = true}, {.title = "ERROR"}});
  for (const LevelResult& level : result.levels) {
    for (const auto& [text, count] : level.errors) {
      table.Add({level.Title(), fmt::format("{}", count), text});
    }
  }
  return table;
}

Table ComparisonTable(const std::vector<LevelComparison>& levels) {
  Table table({{.title = "LOAD"},
               {.title = "MEASURED"},
               {.title = "BEFORE", .is_number = true},
               {.title = "AFTER", .is_number = true},
               {.title = "CHANGE (99 % SURE)", .is_number = true},
               {.title = "VERDICT"}});
  for (const LevelComparison& level : levels) {
    const LevelResult& before = *level.before;
    const LevelResult& after = *level.after;
    table.Add({after.Title(), "requests/s", FormatRate(before.rate.value),
               FormatRate(after.rate.value), ChangeText(level.rate),
               VerdictCell(level.rate, /*is_higher_better=*/true)});
    table.Add({"", "p50", TimeText(before.quantiles_us[kP50].value),
               TimeText(after.quantiles_us[kP50].value), ChangeText(level.p50),
               VerdictCell(level.p50, false)});
    table.Add({"", "p99", TimeText(before.quantiles_us[kP99].value),
               TimeText(after.quantiles_us[kP99].value), ChangeText(level.p99),
               VerdictCell(level.p99, false)});
  }
  return table;
}

std::vector<std::string> BenchWarnings(const BenchResult& result) {
  std::vector<std::string> warnings;
  for (const LevelResult& level : result.levels) {
    const std::string title = level.Title();
    if (level.succeeded == 0) {
      warnings.push_back(
          fmt::format("{}: no request succeeded in {:.3g} s; a longer --duration may help", title,
                      level.seconds));
      continue;
    }
    if (level.busy > kBusy) {
      warnings.push_back(fmt::format(
          "{}: the load generator was working {:.0f} % of the time and may itself be the limit; "
          "--threads gives it more",
          title, level.busy * 100));
    }
    if (level.is_open && level.rate.value < level.load * kRateReached) {
      warnings.push_back(
          fmt::format("{}: {} requests/s succeeded in time; if that is the most the server can do, "
                      "latencies grow "
                      "for as long as the measurement lasts",
                      title, FormatRate(level.rate.value)));
    }
    if (level.unfinished > 0) {
      warnings.push_back(fmt::format(
          "{}: {} requests had no response when the measurement was given up; their time until "
          "then is counted",
          title, level.unfinished));
    }
    if (level.succeeded < kEnoughForP99) {
      warnings.push_back(
          fmt::format("{}: p99 of {} requests is a matter of luck; a longer --duration helps",
                      title, level.succeeded));
    }
  }
  return warnings;
}

}  // namespace nereid::cli
