// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_report.h"

#include <fmt/format.h>

#include "cli/bench_report.h"
#include "cli/bench_tables.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/svg_plot.h"

namespace nereid::cli {
namespace {

constexpr const char* kStages[] = {"start", "climb", "final"};

PlotPoint PointOf(const TuneTrial& trial, const TuneResult& result) {
  const std::string text = result.describe(trial.choice);
  return {.x = trial.score.rate,
          .y = trial.score.p99_us / 1e3,
          .title = fmt::format("{}: {}", text, ScoreText(trial.score))};
}

Plot TrialPlot(const TuneResult& result) {
  Plot plot{.title = "Throughput and p99 of each trial",
            .x = {.title = "requests/s"},
            .y = {.title = "p99, ms", .is_log = true},
            .y_limit = result.goal_us / 1e3,
            .limit_text = fmt::format("goal: {}", TimeText(result.goal_us))};
  PlotSeries search{.name = "search", .colour = PlotSeries::kPast, .has_line = false};
  PlotSeries finals{.name = "finals", .colour = 4, .has_line = false};
  for (const TuneTrial& trial : result.outcome.trials) {
    if (!trial.score.failure.empty()) continue;
    (trial.stage == 2 ? finals : search).points.push_back(PointOf(trial, result));
  }
  PlotSeries present{.name = "present configuration", .colour = 2, .has_line = false};
  present.is_large = true;
  if (result.outcome.present.score.failure.empty()) {
    present.points.push_back(PointOf(result.outcome.present, result));
  }
  PlotSeries best{.name = "best", .colour = 0, .has_line = false};
  best.is_large = true;
  best.points.push_back(PointOf(result.outcome.best, result));
  best.points.front().label = "best";
  plot.series = {std::move(search), std::move(finals), std::move(present), std::move(best)};
  return plot;
}

Table TrialTable(const TuneResult& result) {
  Table table({{.title = "TRIAL", .is_number = true},
               {.title = "STAGE"},
               {.title = "CONFIGURATION"},
               {.title = "REQ/S", .is_number = true},
               {.title = "P99", .is_number = true},
               {.title = "IN FLIGHT", .is_number = true},
               {.title = "GOAL"}});
  size_t number = 0;
  for (const TuneTrial& trial : result.outcome.trials) {
    const TuneScore& score = trial.score;
    const bool has_failed = !score.failure.empty();
    Cell goal = score.meets ? Cell("met", Style::kGood) : Cell("missed", Style::kBad);
    if (has_failed) goal = Cell(score.failure, Style::kBad);
    table.Add({fmt::format("{}", ++number), kStages[trial.stage], result.describe(trial.choice),
               has_failed ? "-" : FormatRate(score.rate), TimeText(score.p99_us),
               has_failed ? "-" : fmt::format("{:g}", score.concurrency), std::move(goal)});
  }
  return table;
}

rapidjson::Value TrialJson(const TuneTrial& trial, const TuneResult& result,
                           rapidjson::Document& document) {
  rapidjson::Value value(rapidjson::kObjectType);
  const auto add = [&](const char* name, rapidjson::Value member) {
    AddMember(document, value, name, std::move(member));
  };
  add("configuration", TextValue(result.describe(trial.choice), document));
  const auto add_setting = [&](const char* name, int setting, int none) {
    if (setting != none) add(name, rapidjson::Value(setting));
  };
  add_setting("instances", trial.choice.instances, 0);
  add_setting("threads", trial.choice.threads, 0);
  add_setting("max_batch_size", trial.choice.max_batch, 0);
  add_setting("max_queue_delay_us", trial.choice.delay_us, -1);
  add("stage", rapidjson::Value(rapidjson::StringRef(kStages[trial.stage])));
  if (!trial.score.failure.empty()) {
    add("error", TextValue(trial.score.failure, document));
    return value;
  }
  add("meets_goal", rapidjson::Value(trial.score.meets));
  add("requests_per_s", rapidjson::Value(trial.score.rate));
  add("p99_us", rapidjson::Value(trial.score.p99_us));
  add("concurrency", rapidjson::Value(trial.score.concurrency));
  return value;
}

}  // namespace

std::string ScoreText(const TuneScore& score) {
  if (!score.failure.empty()) return score.failure;
  return fmt::format("{} requests/s, p99 {} with {:g} in flight", FormatRate(score.rate),
                     TimeText(score.p99_us), score.concurrency);
}

std::string TuneVerdict(const TuneResult& result) {
  const TuneTrial& best = result.outcome.best;
  const TuneTrial& present = result.outcome.present;
  const std::string goal = TimeText(result.goal_us);
  if (!best.score.failure.empty()) {
    return fmt::format("No configuration could be measured: {}", best.score.failure);
  }
  if (!best.score.meets) {
    return fmt::format(
        "No configuration has a p99 of {}: the nearest is {} with one request in flight ({}).",
        goal, TimeText(best.score.p99_us), result.describe(best.choice));
  }
  if (result.patch.empty()) {
    return fmt::format("The configuration as it is is as good as any that was tried: {}.",
                       ScoreText(best.score));
  }
  std::string text = fmt::format("Best: {}: {}.\nAs it is: {}.\n", result.describe(best.choice),
                                 ScoreText(best.score), ScoreText(present.score));
  if (!present.score.failure.empty() || !present.score.meets) {
    return text + fmt::format("Only the best one meets the goal of {}.", goal);
  }
  const double gain = (best.score.rate / present.score.rate - 1) * 100;
  return text + (result.outcome.is_certain
                     ? fmt::format("That is {:+.1f} %, in every one of the repeats.", gain)
                     : fmt::format("That is {:+.1f} %, which is within the noise of the repeats: "
                                   "the configuration as it is may be as good.",
                                   gain));
}

rapidjson::Document TuneJson(const TuneResult& result) {
  rapidjson::Document document;
  document.SetObject();
  const auto add = [&](const char* name, rapidjson::Value member) {
    AddMember(document, document, name, std::move(member));
  };
  add("model", TextValue(result.model, document));
  add("goal_p99_us", rapidjson::Value(result.goal_us));
  add("meets_goal", rapidjson::Value(result.outcome.best.score.meets));
  add("is_certain", rapidjson::Value(result.outcome.is_certain));
  add("seconds", rapidjson::Value(result.seconds));
  add("choices", rapidjson::Value(uint64_t{result.space}));
  add("best", TrialJson(result.outcome.best, result, document));
  add("present", TrialJson(result.outcome.present, result, document));
  rapidjson::Value trials(rapidjson::kArrayType);
  for (const TuneTrial& trial : result.outcome.trials) {
    trials.PushBack(TrialJson(trial, result, document), document.GetAllocator());
  }
  add("trials", std::move(trials));
  add("verdict", TextValue(TuneVerdict(result), document));
  add("patch", TextValue(result.patch, document));
  return document;
}

std::string TuneReport(const TuneResult& result) {
  std::string body = fmt::format(
      "<p style=\"white-space:pre-line\">{}</p><p class=\"soft\">{} measurements in {:.0f} s, of "
      "{} possible configurations.</p>\n",
      EscapeHtml(TuneVerdict(result)), result.outcome.trials.size(), result.seconds, result.space);
  body += PlotHtml(TrialPlot(result));
  if (!result.patch.empty()) {
    body += fmt::format("<h2>The change</h2>\n<pre tabindex=\"0\">{}</pre>\n",
                        EscapeHtml(result.patch));
  }
  body += "<h2>Trials</h2>\n" + HtmlTable(TrialTable(result), "Trials");
  return HtmlPage(fmt::format("nereid tune {}", result.model), body);
}

}  // namespace nereid::cli
