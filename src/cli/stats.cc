// SPDX-License-Identifier: Apache-2.0
// nereid stats
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/live.h"
#include "cli/model_numbers.h"

namespace nereid::cli {
namespace {

struct StatsSettings {
  std::optional<std::string> model;
  std::optional<Seconds> watch;
  ServerOptions server;
};

// A reading of the statistics, and when it was made.
struct Reading {
  std::vector<ModelNumbers> models;
  std::chrono::steady_clock::time_point time;
};

const ModelNumbers* Find(const Reading& reading, const ModelNumbers& model) {
  const auto found = std::ranges::find_if(reading.models, [&](const ModelNumbers& one) {
    return one.name == model.name && one.version == model.version;
  });
  return found == reading.models.end() ? nullptr : &*found;
}

std::string Age(uint64_t last_inference_ms) {
  if (last_inference_ms == 0) return "never";
  const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  // The server's clock may be ahead.
  return FormatAge(std::max<int64_t>(now - static_cast<int64_t>(last_inference_ms), 0) / 1000) +
         " ago";
}

std::string Mean(const DurationSum& sum) {
  return sum.count == 0 ? "-" : FormatNanoseconds(sum.mean_ns());
}

// One line for each version. `before` is the previous reading, or null.
Table TableOf(const Reading& now, const Reading* before, bool is_watching) {
  std::vector<Column> columns = {{.title = "MODEL", .may_shrink = true},
                                 {.title = "VERSION", .is_number = true},
                                 {.title = "REQUESTS", .is_number = true},
                                 {.title = "FAILED", .is_number = true},
                                 {.title = "BATCH", .is_number = true},
                                 {.title = "QUEUE", .is_number = true},
                                 {.title = "COMPUTE", .is_number = true},
                                 {.title = "TOTAL", .is_number = true},
                                 {.title = "LAST"}};
  if (is_watching) columns.insert(columns.begin() + 2, {.title = "REQ/S", .is_number = true});
  Table table(std::move(columns));
  for (const ModelNumbers& model : now.models) {
    const ModelNumbers* const earlier = before == nullptr ? nullptr : Find(*before, model);
    const ModelNumbers shown = earlier == nullptr ? model : Since(*earlier, model);
    std::vector<Cell> row = {
        model.name,
        model.version,
        fmt::format("{}", model.requests()),
        {fmt::format("{}", model.fail.count), model.fail.count > 0 ? Style::kBad : Style::kPlain},
        shown.execution_count == 0 ? "-" : FormatRate(shown.mean_batch()),
        Mean(shown.queue),
        shown.compute_infer.count == 0 ? "-" : FormatNanoseconds(shown.mean_compute_ns()),
        Mean(shown.success),
        Age(model.last_inference_ms)};
    if (is_watching) {
      const Seconds time = before == nullptr ? Seconds(0) : now.time - before->time;
      row.insert(row.begin() + 2,
                 earlier == nullptr || time.count() <= 0
                     ? Cell("-")
                     : Cell(FormatRate(static_cast<double>(shown.requests()) / time.count())));
    }
    table.Add(std::move(row));
  }
  return table;
}

// The executions of one version by their batch sizes.
void PrintBatches(const ModelNumbers& model, Output& output) {
  if (model.batches.empty()) return;
  Table table({{.title = "BATCH SIZE", .is_number = true},
               {.title = "EXECUTIONS", .is_number = true},
               {.title = "INPUT", .is_number = true},
               {.title = "INFER", .is_number = true},
               {.title = "OUTPUT", .is_number = true}});
  for (const BatchNumbers& batch : model.batches) {
    table.Add({fmt::format("{}", batch.batch_size), fmt::format("{}", batch.compute_infer.count),
               Mean(batch.compute_input), Mean(batch.compute_infer), Mean(batch.compute_output)});
  }
  output.PrintText(fmt::format("\n{}, version {}:\n", model.name, model.version));
  output.PrintTable(table);
}

base::Result<ExitCode> Stats(const StatsSettings& settings, std::optional<Reading>& before,
                             ServerClient& client, Output& output) {
  const std::string path =
      settings.model ? ModelPath(*settings.model, "", "/stats") : "/v2/models/stats";
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document document, client.GetJson(path));
  if (output.wants_json()) {
    output.PrintJson(document);
    return ExitCode::kSuccess;
  }
  Reading now{ReadModelNumbers(document), std::chrono::steady_clock::now()};
  if (now.models.empty()) {
    output.PrintText("The server has loaded no models.\n");
  } else {
    output.PrintTable(TableOf(now, before ? &*before : nullptr, settings.watch.has_value()));
  }
  if (settings.model) {
    for (const ModelNumbers& model : now.models) PrintBatches(model, output);
  }
  before = std::move(now);
  return ExitCode::kSuccess;
}

}  // namespace

void AddStats(Command& command) {
  auto& settings = command.Keep<StatsSettings>();
  command.Describe(
      "Requests of each model since it was loaded, and the average of the time that a request "
      "spent "
      "in the queue, that an execution took, and that a request took from beginning to end. With "
      "--watch, the averages and REQ/S are those of the last interval. With a model, its "
      "executions "
      "by batch size as well.");
  command.Positional("MODEL", settings.model, "Only this model.").Names(Hint::kModel);
  AddWatch(command, settings.watch);
  AddServerOptions(command, settings.server);
  command.AddExample("nereid stats", "What all models have done.");
  command.AddExample("nereid stats --watch", "What they do now, every 2 seconds.");
  command.OnRun([&settings](Invocation& invocation) {
    std::optional<Reading> before;
    return Watch(settings.watch, settings.server, invocation.output, [&](ServerClient& client) {
      return Stats(settings, before, client, invocation.output);
    });
  });
}

}  // namespace nereid::cli
