// SPDX-License-Identifier: Apache-2.0
// nereid tune
#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "base/log.h"
#include "cli/bench_request.h"
#include "cli/bench_tables.h"
#include "cli/commands.h"
#include "cli/config_edit.h"
#include "cli/files.h"
#include "cli/find_model.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/tune_model.h"
#include "cli/tune_report.h"

namespace nereid::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TuneSettings {
  std::string model;
  std::vector<std::string> repositories;
  Seconds p99{0};
  Seconds budget{120};
  int max_concurrency = 256;
  std::string protocol = "http";
  BenchInputs inputs;
  bool wants_zeros = false;
  bool wants_all = false;
  std::string vary = "instances,threads,batch,delay";
  std::optional<std::string> out;
  std::optional<std::string> html;
  bool apply = false;
};

// About so many levels of load are measured in a budget.
constexpr double kLevelsOfBudget = 400;
constexpr Seconds kShortestSearchLevel{0.1};
constexpr Seconds kMaxSearchLevelTime{2};
// The effort of the finals, with which --grid measures every configuration.
constexpr double kGridEffort = 3;

base::Status CheckSettings(const TuneSettings& settings) {
  if (settings.p99.count() <= 0) return base::InvalidArgumentError("--p99: expected more than 0");
  if (settings.budget.count() < 1) {
    return base::InvalidArgumentError("--budget: expected at least 1s");
  }
  if (settings.max_concurrency < 1 || settings.inputs.batch_size < 1 ||
      settings.inputs.distinct < 1) {
    return base::InvalidArgumentError(
        "--max-concurrency, --batch-size and --distinct: expected 1 or more");
  }
  return base::OkStatus();
}

// Empties what --vary does not name.
base::Status Restrict(std::string_view names, TuneSpace& space) {
  // A setting by the name that the option has for it.
  struct Setting {
    std::string_view name;
    std::vector<int>& values;
    bool is_varied = false;
  };
  Setting settings[] = {{"instances", space.instances},
                        {"threads", space.threads},
                        {"batch", space.max_batches},
                        {"delay", space.delays_us}};
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    const auto found = std::ranges::find(settings, name, &Setting::name);
    if (found == std::end(settings)) {
      return base::InvalidArgumentError(
          fmt::format("--vary '{}': expected some of instances, threads, batch and delay", name));
    }
    found->is_varied = true;
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  for (Setting& setting : settings) {
    if (!setting.is_varied) setting.values.clear();
  }
  return base::OkStatus();
}

double SecondsSince(Clock::time_point begin) { return Seconds(Clock::now() - begin).count(); }

// Shows each trial as it ends, and how much of the budget is used.
class TrialPrinter {
 public:
  TrialPrinter(const TunedModel& model, double budget, Output& output)
      : model_(model), budget_(budget), output_(output), progress_(output, "tuning") {}

  void ShowProgress(std::string_view what) { progress_.Show(SecondsSince(begin_) / budget_, what); }

  void Print(const TuneTrial& trial) {
    if (output_.wants_json()) return;
    progress_.Clear();
    const bool is_good = trial.score.failure.empty() && trial.score.meets;
    output_.PrintText(
        fmt::format("{:5.1f} s  {:<52}  {}\n", SecondsSince(begin_), model_.Describe(trial.choice),
                    output_.InStyle(is_good ? Style::kGood : Style::kBad, ScoreText(trial.score))));
    output_.Flush();
  }

 private:
  const TunedModel& model_;
  const double budget_;
  Output& output_;
  Progress progress_;
  const Clock::time_point begin_ = Clock::now();
};

// Measures every choice once, for comparing the search with.
TuneOutcome MeasureAll(const TuneSpace& space, const TuneWorld& world) {
  TuneOutcome outcome;
  for (const TuneChoice& choice : space.All()) {
    outcome.trials.push_back({choice, world.measure(choice, kGridEffort, 0), 2});
    if (world.on_trial) world.on_trial(outcome.trials.back());
  }
  outcome.best = *std::ranges::max_element(
      outcome.trials,
      [](const TuneTrial& a, const TuneTrial& b) { return IsBetter(b.score, a.score); });
  outcome.present = {{}, world.measure({}, kGridEffort, 0), 2};
  return outcome;
}

base::Result<TuneResult> RunSearch(const TuneSettings& settings, const check::ModelView& model,
                                   const Interrupt& interrupt, Output& output) {
  TuneGoal goal{.p99_us = settings.p99.count() * 1e6,
                .max_concurrency = settings.max_concurrency,
                .uses_grpc = settings.protocol == "grpc",
                .inputs = settings.inputs,
                .level = std::clamp(settings.budget / kLevelsOfBudget, kShortestSearchLevel,
                                    kMaxSearchLevelTime)};
  goal.inputs.arguments.filling = settings.wants_zeros ? Filling::kZeros : Filling::kRandom;
  NEREID_ASSIGN_OR_RETURN(const auto tuned, TunedModel::Create(model, goal, interrupt.token()));
  const auto begin = Clock::now();
  TrialPrinter printer(*tuned, settings.budget.count(), output);
  printer.ShowProgress("starting a server");
  NEREID_ASSIGN_OR_RETURN(TuneSpace space, tuned->ReadSpace());
  NEREID_RETURN_IF_ERROR(Restrict(settings.vary, space));
  const TuneWorld world{.measure =
                            [&](const TuneChoice& choice, double effort, double concurrency) {
                              printer.ShowProgress(tuned->Describe(choice));
                              return tuned->Measure(choice, effort, concurrency);
                            },
                        .left =
                            [&] {
                              return interrupt.is_requested()
                                         ? -1
                                         : 1 - SecondsSince(begin) / settings.budget.count();
                            },
                        .on_trial = [&](const TuneTrial& trial) { printer.Print(trial); }};
  TuneResult result{.model = model.name, .goal_us = goal.p99_us, .space = space.size()};
  result.outcome = settings.wants_all ? MeasureAll(space, world) : SearchChoices(space, world);
  if (interrupt.is_requested()) return base::CancelledError("interrupted");
  result.seconds = SecondsSince(begin);
  std::map<TuneChoice, std::string> names;
  for (const TuneTrial& trial : result.outcome.trials) {
    names[trial.choice] = tuned->Describe(trial.choice);
  }
  result.describe = [names = std::move(names)](const TuneChoice& choice) {
    const auto found = names.find(choice);
    return found == names.end() ? std::string("as it is") : found->second;
  };
  result.text = tuned->TextWith(result.outcome.best.choice);
  result.patch = UnifiedDiff(model.text, result.text, model.name + "/config.pbtxt");
  return result;
}

base::Status WriteChanges(const TuneSettings& settings, const check::ModelView& model,
                          const TuneResult& result, Output& output) {
  if (settings.html) {
    NEREID_RETURN_IF_ERROR(WriteFile(*settings.html, TuneReport(result)));
    output.Note(fmt::format("the report is in {}", *settings.html));
  }
  if (settings.out) {
    NEREID_RETURN_IF_ERROR(WriteFile(*settings.out, result.patch));
    output.Note(
        fmt::format("the patch is in {}, for 'patch -p1' in the repository", *settings.out));
  }
  if (!settings.apply || result.patch.empty()) return base::OkStatus();
  if (!result.outcome.is_certain || !result.outcome.best.score.meets) {
    output.Note("the configuration was not changed, as the change is not known to be better");
    return base::OkStatus();
  }
  NEREID_RETURN_IF_ERROR(WriteFile(model.config_path, result.text));
  output.Note(fmt::format("{} was changed", model.config_path));
  return base::OkStatus();
}

base::Result<ExitCode> Tune(const TuneSettings& settings, const Interrupt& interrupt,
                            Output& output) {
  NEREID_RETURN_IF_ERROR(CheckSettings(settings));
  const ModelPlace place = PlaceOf(settings.model, settings.repositories);
  NEREID_ASSIGN_OR_RETURN(const check::ModelView model, FindModel(place, {}));
  NEREID_RETURN_IF_ERROR(model.read_status);
  NEREID_RETURN_IF_ERROR(model.parse_status);
  // What a search would have been for nothing without comes first.
  for (const std::optional<std::string>& file : {settings.html, settings.out}) {
    if (file) NEREID_RETURN_IF_ERROR(CheckWritable(*file));
  }
  if (settings.apply) NEREID_RETURN_IF_ERROR(CheckWritable(model.config_path));
  NEREID_ASSIGN_OR_RETURN(const TuneResult result, RunSearch(settings, model, interrupt, output));
  if (output.wants_json()) {
    output.PrintJson(TuneJson(result));
  } else {
    output.PrintText("\n" + TuneVerdict(result) + "\n");
    if (!result.patch.empty()) output.PrintText("\n" + result.patch);
  }
  NEREID_RETURN_IF_ERROR(WriteChanges(settings, model, result, output));
  return result.outcome.best.score.meets ? ExitCode::kSuccess : ExitCode::kFailure;
}

}  // namespace

void AddTune(Command& command) {
  auto& settings = command.Keep<TuneSettings>();
  command.Describe(
      "Searches for the configuration of a model with which this machine manages the most requests "
      "a second while 99 % of the responses arrive in time: how many instances, threads of the "
      "framework, rows in a batch, and how long a batch waits. Each trial is a server of its own, "
      "under the load of 'nereid bench', on a copy of the configuration. Shows the change as a "
      "patch; the exit status is 1 if no configuration meets the goal.");
  AddModelPlace(command, settings.model, settings.repositories);
  command.Option("--p99", "TIME", settings.p99, "The goal: 99 % of the requests take no longer.")
      .Required();
  command.Option("--budget", "TIME", settings.budget,
                 "How long the search may take, about. The last measurements are finished.");
  command.Option("--max-concurrency", "N", settings.max_concurrency,
                 "No more requests than this are in flight.");
  command.Option("--protocol,-i", "NAME", settings.protocol, "The protocol of the load.")
      .OneOf({"http", "grpc"});
  command.Option("--vary", "LIST", settings.vary, "The settings that are varied.");
  command.Flag("--grid", settings.wants_all,
               "Measures every configuration instead of searching, however long that takes.");
  AddBenchInputs(command, settings.inputs, settings.wants_zeros);
  const std::string heading = "Result";
  command.Option("--out,-o", "FILE", settings.out, "Writes the patch into the file.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Flag("--apply", settings.apply,
            "Changes config.pbtxt, if the change is better in every one of the repeats.")
      .In(heading);
  command
      .Option("--html", "FILE", settings.html,
              "Writes a report with a plot of all trials, as one page of HTML.")
      .Names(Hint::kFile)
      .In(heading);
  command.AddExample("nereid tune models/resnet --p99 20ms",
                     "Searches for two minutes and shows the change.");
  command.AddExample("nereid tune models/resnet --p99 20ms --budget 10m --apply --html tune.html",
                     "Searches for longer, changes the configuration and writes a report.");
  command.OnRun([&settings](Invocation& invocation) {
    Output& output = invocation.output;
    const Interrupt interrupt;
    // What is wrong is told once, by the command.
    base::Status status = base::ConfigureLog({.info = false, .warning = false, .error = false});
    if (status.ok()) {
      const base::Result<ExitCode> code = Tune(settings, interrupt, output);
      if (code.ok()) return *code;
      status = code.status();
    }
    const bool is_usage = status.code() == base::StatusCode::kInvalidArgument ||
                          status.code() == base::StatusCode::kNotFound;
    return output.Fail(is_usage ? ExitCode::kUsage : ExitCode::kFailure, status.message());
  });
}

}  // namespace nereid::cli
