// SPDX-License-Identifier: Apache-2.0
// nereid metrics
#include <algorithm>

#include <fmt/format.h>

#include "base/unix_address.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/live.h"
#include "cli/metrics_text.h"
#include "http_client/url.h"

namespace nereid::cli {
namespace {

struct MetricsSettings {
  std::optional<std::string> pattern;
  std::optional<std::string> model;
  std::optional<std::string> metrics_url;
  bool is_raw = false;
  std::optional<Seconds> watch;
  ServerOptions server;
};

constexpr std::string_view kMetricsPort = "8002";

// The address of the metrics, which have a port of their own.
std::string MetricsUrl(const MetricsSettings& settings) {
  constexpr std::string_view kPath = "/metrics";
  if (settings.metrics_url) {
    const bool has_path = settings.metrics_url->ends_with(kPath);
    return settings.metrics_url->substr(
        0, settings.metrics_url->size() - (has_path ? kPath.size() : 0));
  }
  // A server on a Unix socket has its metrics on the loopback address.
  if (settings.server.url.starts_with(base::kUnixPrefix))
    return fmt::format("http://127.0.0.1:{}", kMetricsPort);
  auto url = http_client::ParseUrl(settings.server.url);
  if (!url.ok()) return settings.server.url;
  // Metrics are never behind TLS.
  url->is_tls = false;
  url->port = kMetricsPort;
  url->path.clear();
  return url->ToString();
}

bool IsWanted(const MetricSample& sample, const MetricsSettings& settings) {
  if (settings.model && sample.label("model") != *settings.model) return false;
  return !settings.pattern || sample.name.find(*settings.pattern) != std::string::npos;
}

Table TableOf(const std::vector<MetricSample>& samples) {
  Table table({{.title = "METRIC"},
               {.title = "MODEL", .may_shrink = true},
               {.title = "LABELS", .may_shrink = true},
               {.title = "VALUE", .is_number = true}});
  for (const MetricSample& sample : samples) {
    std::string model(sample.label("model"));
    if (const std::string_view version = sample.label("version"); !version.empty()) {
      model += fmt::format(":{}", version);
    }
    std::string labels;
    for (const auto& [name, value] : sample.labels) {
      if (name == "model" || name == "version") continue;
      labels += fmt::format("{}{}={}", labels.empty() ? "" : " ", name, value);
    }
    table.Add({sample.name, model, labels, sample.value});
  }
  return table;
}

rapidjson::Document JsonOf(const std::vector<MetricSample>& samples) {
  rapidjson::Document document;
  document.SetArray();
  for (const MetricSample& sample : samples) {
    rapidjson::Value labels(rapidjson::kObjectType);
    for (const auto& [name, value] : sample.labels) {
      labels.AddMember(TextValue(name, document), TextValue(value, document),
                       document.GetAllocator());
    }
    rapidjson::Value one(rapidjson::kObjectType);
    AddMember(document, one, "name", TextValue(sample.name, document));
    AddMember(document, one, "type", TextValue(sample.type, document));
    AddMember(document, one, "help", TextValue(sample.help, document));
    AddMember(document, one, "labels", std::move(labels));
    // A number as it stands there; what JSON cannot write as a number stays text.
    rapidjson::Document number;
    const bool is_number = !number.Parse(sample.value.c_str()).HasParseError() && number.IsNumber();
    AddMember(document, one, "value",
              is_number ? rapidjson::Value(number, document.GetAllocator())
                        : TextValue(sample.value, document));
    document.PushBack(one, document.GetAllocator());
  }
  return document;
}

base::Result<ExitCode> Metrics(const MetricsSettings& settings, ServerClient& client,
                               Output& output) {
  NEREID_ASSIGN_OR_RETURN(const ServerReply reply, client.Get("/metrics"));
  if (settings.is_raw && !output.wants_json()) {
    output.PrintText(reply.body);
    return ExitCode::kSuccess;
  }
  std::vector<MetricSample> samples = ReadMetrics(reply.body);
  const bool has_any = !samples.empty();
  std::erase_if(samples, [&](const MetricSample& sample) { return !IsWanted(sample, settings); });
  if (samples.empty() && has_any) {
    return base::NotFoundError("no metric of the server matches");
  }
  if (output.wants_json()) {
    output.PrintJson(JsonOf(samples));
  } else {
    output.PrintTable(TableOf(samples));
  }
  return ExitCode::kSuccess;
}

}  // namespace

void AddMetrics(Command& command) {
  auto& settings = command.Keep<MetricsSettings>();
  command.Describe("The metrics of the server, which Prometheus reads at a port of their own.");
  command.Positional("NAME", settings.pattern, "Only metrics whose names contain this.");
  command.Option("--model,-m", "MODEL", settings.model, "Only the metrics of this model.")
      .Names(Hint::kModel);
  command.Flag("--raw", settings.is_raw, "The page as the server sends it, unfiltered.");
  command
      .Option("--metrics-url", "URL", settings.metrics_url,
              "The address of the metrics; without it, port 8002 of the host of --url.")
      .Variable("NEREID_METRICS_URL");
  AddWatch(command, settings.watch);
  AddServerOptions(command, settings.server);
  command.AddExample("nereid metrics queue --model resnet --watch",
                     "How the queue of resnet develops.");
  command.OnRun([&settings](Invocation& invocation) {
    if (settings.is_raw && (settings.pattern || settings.model)) {
      return invocation.output.Fail(ExitCode::kUsage,
                                    "--raw shows the whole page: leave out NAME and --model");
    }
    ServerOptions server = settings.server;
    server.url = MetricsUrl(settings);
    return Watch(settings.watch, server, invocation.output, [&](ServerClient& client) {
      return Metrics(settings, client, invocation.output);
    });
  });
}

}  // namespace nereid::cli
