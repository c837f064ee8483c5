// SPDX-License-Identifier: Apache-2.0
// nereid bench
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/system_limits.h"
#include "cli/bench_report.h"
#include "cli/bench_request.h"
#include "cli/bench_run.h"
#include "cli/bench_tables.h"
#include "cli/child_server.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "http_client/url.h"

namespace nereid::cli {
namespace {

struct BenchSettings {
  std::optional<std::string> model;
  std::string version;
  std::string protocol = "http";
  std::string grpc_url;
  std::optional<std::string> serve;
  std::string concurrency = "1,4,16";
  std::optional<std::string> rate;
  std::string distribution = "poisson";
  int max_in_flight = 512;
  Seconds duration{6};
  Seconds warmup{0.5};
  std::optional<int64_t> requests;
  int rounds = 3;
  int threads = 1;
  BenchInputs inputs;
  bool wants_zeros = false;
  std::optional<std::string> save;
  std::optional<std::string> html;
  std::optional<std::string> compare;
  std::optional<std::string> with;
  ServerOptions server;
};

constexpr double kMaxLevels = 1000;
constexpr double kMaxConcurrency = 10'000;

base::Result<double> ReadNumber(std::string_view option, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0 && value < 1e9) {
    return value;
  }
  return RefuseArgument(fmt::format("{} '{}'", option, text),
                        "expected numbers above 0, such as 1,4,16 or 10:50:10");
}

// Reads "1,4,16" and "FROM:TO:STEP", also mixed.
base::Result<std::vector<double>> ReadLevels(std::string_view option, std::string_view text) {
  std::vector<double> values;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    std::vector<double> parts;
    std::string_view range = text.substr(0, comma);
    while (true) {
      const size_t colon = std::min(range.find(':'), range.size());
      NEREID_ASSIGN_OR_RETURN(const double part, ReadNumber(option, range.substr(0, colon)));
      parts.push_back(part);
      if (colon == range.size()) break;
      range.remove_prefix(colon + 1);
    }
    if (parts.size() > 3) return RefuseArgument(option, "expected FROM:TO:STEP");
    const double to = parts.size() > 1 ? parts[1] : parts[0];
    const double step = parts.size() > 2 ? parts[2] : 1;
    if (to < parts[0] || (to - parts[0]) / step > kMaxLevels) {
      return RefuseArgument(fmt::format("{} '{}'", option, text.substr(0, comma)),
                            "expected FROM:TO:STEP with at most 1000 steps upwards");
    }
    for (int i = 0; parts[0] + i * step <= to * (1 + 1e-9); ++i) {
      values.push_back(parts[0] + i * step);
    }
    if (comma == text.size()) return values;
    text.remove_prefix(comma + 1);
  }
}

base::Result<BenchPlan> PlanOf(const BenchSettings& settings) {
  BenchPlan plan;
  const bool is_open = settings.rate.has_value();
  NEREID_ASSIGN_OR_RETURN(const std::vector<double> loads,
                          is_open ? ReadLevels("--rate", *settings.rate)
                                  : ReadLevels("--concurrency", settings.concurrency));
  for (const double load : loads) {
    if (!is_open && (load != std::floor(load) || load > kMaxConcurrency)) {
      return RefuseArgument("--concurrency", "expected whole numbers up to 10000");
    }
    plan.levels.push_back({.is_open = is_open, .load = load});
  }
  if (settings.rounds < 1 || settings.threads < 1 || settings.max_in_flight < 1 ||
      settings.inputs.batch_size < 1 || settings.inputs.distinct < 1 ||
      settings.requests.value_or(1) < 1) {
    return base::InvalidArgumentError(
        "--rounds, --requests, --threads, --max-in-flight, --batch-size and --distinct: expected 1 "
        "or more");
  }
  if (settings.duration.count() <= 0) {
    return base::InvalidArgumentError("--duration: expected more than 0");
  }
  plan.rounds = settings.rounds;
  plan.warmup = settings.warmup;
  plan.duration = settings.duration;
  plan.requests = static_cast<uint64_t>(settings.requests.value_or(0));
  plan.timeout = settings.server.timeout;
  plan.threads = static_cast<size_t>(settings.threads);
  plan.max_in_flight = static_cast<size_t>(settings.max_in_flight);
  plan.distribution = settings.distribution == "constant" ? loadgen::Distribution::kConstant
                                                          : loadgen::Distribution::kPoisson;
  return plan;
}

// "4 CPUs, Intel(R) Xeon(R) ...": of the machine that sends the load.
std::string Machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (!line.starts_with("model name")) continue;
    return fmt::format("{} CPUs, {}", base::AvailableCpus(),
                       line.substr(std::min(line.find(':') + 2, line.size())));
  }
  return fmt::format("{} CPUs", base::AvailableCpus());
}

std::string Now() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
}

// gRPC is usually on the port after that of HTTP.
base::Result<std::string> GrpcUrlOf(const BenchSettings& settings) {
  if (settings.protocol != "grpc") return std::string();
  if (!settings.grpc_url.empty()) return settings.grpc_url;
  auto url = http_client::ParseUrl(settings.server.url);
  int port = 0;
  if (url.ok()) {
    std::from_chars(url->port.data(), url->port.data() + url->port.size(), port);
  }
  if (port == 0) return base::InvalidArgumentError("--grpc-url is needed beside this --url");
  url->port = fmt::format("{}", port + 1);
  url->path.clear();
  return url->ToString();
}

// A path rather than the name of a model.
bool IsPath(const std::string& model) {
  std::error_code ignored;
  return model.find_first_of("/.") != std::string::npos && std::filesystem::exists(model, ignored);
}

// Starts a server if one is wanted, and says what to measure.
base::Result<BenchAddress> FindServer(BenchSettings& settings, const Interrupt& interrupt,
                                      std::unique_ptr<ChildServer>& child, Output& output) {
  if (settings.model && !settings.serve && IsPath(*settings.model)) {
    settings.serve = std::exchange(settings.model, std::nullopt);
  }
  if (settings.serve) {
    output.Note(fmt::format("serving {} for the duration of the measurement", *settings.serve));
    NEREID_ASSIGN_OR_RETURN(child, ChildServer::Start({*settings.serve}, interrupt.token()));
    settings.server.url = child->http_url();
    settings.grpc_url = child->grpc_url();
    if (!settings.model) {
      if (child->models().size() != 1) {
        return base::InvalidArgumentError(fmt::format("{} has {} models: name the one to measure",
                                                      *settings.serve, child->models().size()));
      }
      settings.model = child->models().front();
    }
  }
  if (!settings.model) return base::InvalidArgumentError("MODEL is missing");
  NEREID_ASSIGN_OR_RETURN(std::string grpc_url, GrpcUrlOf(settings));
  return BenchAddress{.server = settings.server,
                      .grpc_url = std::move(grpc_url),
                      .model = *settings.model,
                      .version = settings.version};
}

base::Result<BenchResult> Measure(BenchSettings& settings, const BenchPlan& plan, Output& output) {
  const Interrupt interrupt;
  std::unique_ptr<ChildServer> child;
  NEREID_ASSIGN_OR_RETURN(const BenchAddress address,
                          FindServer(settings, interrupt, child, output));
  NEREID_ASSIGN_OR_RETURN(const auto client, ServerClient::Create(address.server));
  client->CancelOn(interrupt.token());
  NEREID_ASSIGN_OR_RETURN(const PreparedBench prepared,
                          PrepareBench(*client, address, settings.inputs));
  BenchResult result{.model = address.model,
                     .version = address.version,
                     .protocol = address.grpc_url.empty() ? "HTTP" : "gRPC",
                     .url = address.grpc_url.empty() ? address.server.url : address.grpc_url,
                     .started = Now(),
                     .machine = Machine(),
                     .inputs = prepared.description,
                     .batch_size = settings.inputs.batch_size,
                     .distribution = settings.rate ? settings.distribution : ""};
  if (const auto about = client->GetJson("/v2"); about.ok()) {
    result.server = fmt::format("{} {}", TextOf(*about, "name"), TextOf(*about, "version"));
  }
  Progress progress(output, "measuring");
  BenchSubject subject{.target = prepared.target,
                       .requests = prepared.requests,
                       .model = address.model,
                       .version = address.version,
                       .statistics = client.get(),
                       .stop = interrupt.token()};
  subject.on_progress = [&](double share, std::string_view level) { progress.Show(share, level); };
  base::Status status = TryRequest(subject, plan.timeout);
  if (status.ok()) {
    auto levels = MeasureLevels(subject, plan);
    if (levels.ok()) {
      result.levels = *std::move(levels);
      return result;
    }
    status = levels.status();
  }
  if (status.code() != base::StatusCode::kUnavailable) return status;
  return status.WithPrefix(fmt::format("there is no server at {} (any more): ", result.url));
}

base::Result<BenchResult> ReadResult(const std::string& path) {
  NEREID_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  rapidjson::Document document;
  ParseJson(text, document);
  auto result = ReadBenchJson(document);
  if (!result.ok()) return result.status().WithPrefix(fmt::format("{}: ", path));
  return result;
}

void PrintComparison(const BenchResult& before, const BenchResult& after, Output& output) {
  const std::vector<LevelComparison> levels = CompareResults(before, after);
  output.PrintText(fmt::format("\nCompared with the run of {}:\n", before.started));
  if (!levels.empty()) output.PrintTable(ComparisonTable(levels));
  output.PrintText(VerdictOf(before, after, levels) + "\n");
}

void PrintResult(const BenchResult& result, Output& output) {
  output.PrintTable(LevelTable(result));
  if (result.failed() > 0) {
    output.PrintText("\n");
    output.PrintTable(ErrorTable(result));
  }
  for (const std::string& warning : BenchWarnings(result)) output.Warn(warning);
}

// The document of --json: the result, and what a comparison says.
rapidjson::Document WholeJson(const BenchResult& result, const std::optional<BenchResult>& before) {
  rapidjson::Document document = BenchJson(result);
  if (!before) return document;
  const auto levels = CompareResults(*before, result);
  const auto difference = [&](const Difference& one) {
    constexpr const char* kNames[] = {"higher", "lower", "noise"};
    rapidjson::Value object(rapidjson::kObjectType);
    AddMember(document, object, "change", rapidjson::Value(one.change));
    AddMember(document, object, "margin",
              std::isfinite(one.margin) ? rapidjson::Value(one.margin) : rapidjson::Value());
    AddMember(document, object, "verdict",
              rapidjson::Value(rapidjson::StringRef(kNames[static_cast<size_t>(one.verdict)])));
    return object;
  };
  rapidjson::Value list(rapidjson::kArrayType);
  for (const LevelComparison& level : levels) {
    rapidjson::Value object(rapidjson::kObjectType);
    AddMember(document, object, "level", TextValue(level.after->Title(), document));
    AddMember(document, object, "requests_per_s", difference(level.rate));
    AddMember(document, object, "p50", difference(level.p50));
    AddMember(document, object, "p99", difference(level.p99));
    list.PushBack(object, document.GetAllocator());
  }
  rapidjson::Value comparison(rapidjson::kObjectType);
  AddMember(document, comparison, "started", TextValue(before->started, document));
  AddMember(document, comparison, "verdict",
            TextValue(VerdictOf(*before, result, levels), document));
  AddMember(document, comparison, "levels", std::move(list));
  AddMember(document, document, "compared_with", std::move(comparison));
  return document;
}

base::Result<ExitCode> Bench(BenchSettings& settings, Output& output) {
  if (settings.with && !settings.compare) {
    return base::InvalidArgumentError("--with needs --compare");
  }
  settings.inputs.arguments.filling = settings.wants_zeros ? Filling::kZeros : Filling::kRandom;
  NEREID_ASSIGN_OR_RETURN(const BenchPlan plan, PlanOf(settings));
  // What a measurement would have been for nothing without comes first.
  for (const std::optional<std::string>& file : {settings.save, settings.html}) {
    if (file) NEREID_RETURN_IF_ERROR(CheckWritable(*file));
  }
  std::optional<BenchResult> before;
  if (settings.compare) {
    NEREID_ASSIGN_OR_RETURN(before, ReadResult(*settings.compare));
  }
  NEREID_ASSIGN_OR_RETURN(const BenchResult result, settings.with
                                                        ? ReadResult(*settings.with)
                                                        : Measure(settings, plan, output));
  if (output.wants_json()) {
    output.PrintJson(WholeJson(result, before));
  } else {
    PrintResult(result, output);
    if (before) PrintComparison(*before, result, output);
  }
  if (settings.save) {
    NEREID_RETURN_IF_ERROR(WriteFile(*settings.save, WriteJson(BenchJson(result)) + "\n"));
  }
  if (settings.html) {
    NEREID_RETURN_IF_ERROR(
        WriteFile(*settings.html, BenchReport(result, before ? &*before : nullptr)));
    output.Note(fmt::format("the report is in {}", *settings.html));
  }
  const bool has_silent_level = std::ranges::any_of(
      result.levels, [](const LevelResult& level) { return level.succeeded == 0; });
  return result.failed() > 0 || has_silent_level ? ExitCode::kFailure : ExitCode::kSuccess;
}

void AddLoadOptions(Command& command, BenchSettings& settings) {
  const std::string heading = "Load";
  command
      .Option("--concurrency,-c", "LIST", settings.concurrency,
              "Requests in flight, in a closed loop: the next is sent when a response has arrived. "
              "Each of a list (1,4,16, or FROM:TO:STEP) is measured.")
      .In(heading);
  command
      .Option("--rate,-r", "LIST", settings.rate,
              "Requests a second, in an open loop instead: each is sent when it is due, whatever "
              "became of those before, and its latency counts from then.")
      .In(heading);
  command
      .Option("--distribution", "NAME", settings.distribution,
              "When requests of an open loop are due: at random, as independent users are, or "
              "evenly.")
      .OneOf({"poisson", "constant"})
      .In(heading);
  command
      .Option("--max-in-flight", "N", settings.max_in_flight,
              "In an open loop, so many requests are in flight at most; others that are due wait, "
              "and their time counts.")
      .In(heading);
  command
      .Option("--duration,-d", "TIME", settings.duration,
              "How long each level is measured, all rounds together.")
      .In(heading);
  command
      .Option("--requests,-n", "N", settings.requests,
              "Measures so many requests at each level instead of a time.")
      .In(heading);
  command
      .Option("--rounds", "N", settings.rounds,
              "Rounds, in each of which every level has its turn. How much they differ tells how "
              "much is noise.")
      .In(heading);
  command
      .Option("--warmup", "TIME", settings.warmup,
              "Load before each measurement, which does not count.")
      .In(heading);
  command
      .Option("--threads", "N", settings.threads,
              "Threads that send the load. One is enough for most models; the command says if not.")
      .In(heading);
}

void AddResultOptions(Command& command, BenchSettings& settings) {
  const std::string heading = "Result";
  command
      .Option("--save", "FILE", settings.save,
              "Writes the result as JSON into the file, for --compare.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Option("--html", "FILE", settings.html, "Writes a report with plots, as one page of HTML.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Option("--compare", "FILE", settings.compare,
              "Compares with an earlier result, and says what of the difference is noise.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Option("--with", "FILE", settings.with,
              "Measures nothing: compares this result with that of --compare.")
      .Names(Hint::kFile)
      .In(heading);
}

}  // namespace

void AddBench(Command& command) {
  auto& settings = command.Keep<BenchSettings>();
  command.Describe(
      "Sends load to a model and shows requests a second, latencies and errors, and what the "
      "server "
      "says about queues and batches meanwhile. Inputs are random in the model's shapes unless "
      "they "
      "are given. A path in place of a name is served for the duration. The exit status is 1 if "
      "requests failed.");
  command
      .Positional("MODEL", settings.model,
                  "The model's name, or the path of a file that 'nereid serve' can serve.")
      .Names(Hint::kModel);
  command.Option("--version", "N", settings.version, "This version of the model.");
  command.Option("--protocol,-i", "NAME", settings.protocol, "The protocol of the load.")
      .OneOf({"http", "grpc"});
  command.Option("--grpc-url", "HOST:PORT", settings.grpc_url,
                 "The server's address for gRPC (https:// in front for TLS); without it, the port "
                 "after that of --url.");
  command
      .Option("--serve", "PATH", settings.serve,
              "Serves this file, folder or repository for the duration, on ports of its own.")
      .Names(Hint::kFile);
  AddLoadOptions(command, settings);
  AddBenchInputs(command, settings.inputs, settings.wants_zeros);
  AddResultOptions(command, settings);
  AddServerOptions(command, settings.server);
  command.AddExample("nereid bench resnet", "1, 4 and 16 random requests at a time, over HTTP.");
  command.AddExample("nereid bench resnet -i grpc --rate 100:500:100 --html report.html",
                     "An open loop at five rates over gRPC, with a report.");
  command.AddExample("nereid bench digits --input @seven.npy --input @two.npy --save before.json",
                     "Two real inputs in turn; the result is kept.");
  command.AddExample(
      "nereid bench digits --input @seven.npy --input @two.npy --compare before.json",
      "What has changed since, beyond noise.");
  command.AddExample("nereid bench model.onnx", "Serves a file only to measure it.");
  command.OnRun([&settings](Invocation& invocation) {
    const base::Result<ExitCode> code = Bench(settings, invocation.output);
    if (code.ok()) return *code;
    return invocation.output.Fail(ExitCodeOf(code.status()), code.status().message());
  });
}

}  // namespace nereid::cli
