// SPDX-License-Identifier: Apache-2.0
// nereid health
#include <chrono>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/live.h"

namespace nereid::cli {
namespace {

struct HealthSettings {
  std::optional<std::string> model;
  std::string version;
  bool is_live_only = false;
  std::optional<Seconds> wait;
  ServerOptions server{.timeout = Seconds(5)};
};

// How often a server that is not ready yet is asked again.
constexpr Seconds kRetryInterval{0.1};

// What is asked for, and the path that tells.
struct Question {
  std::string subject;
  const char* quality;
  std::string path;
};

Question QuestionOf(const HealthSettings& settings) {
  if (settings.model) {
    return {*settings.model + (settings.version.empty() ? "" : ", version " + settings.version),
            "ready", ModelPath(*settings.model, settings.version, "/ready")};
  }
  if (settings.is_live_only) return {"the server", "live", "/v2/health/live"};
  return {"the server", "ready", "/v2/health/ready"};
}

// Asks until the result is positive or the time is up.
base::Result<bool> Ask(const HealthSettings& settings, const Question& question,
                       ServerClient& client) {
  if (!settings.wait) return client.Probe(question.path);
  const Interrupt interrupt;
  client.CancelOn(interrupt.token());
  const auto end = std::chrono::steady_clock::now() + *settings.wait;
  while (true) {
    base::Result<bool> result = client.Probe(question.path);
    if (result.ok() && *result) return result;
    const Seconds left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return result;
    if (interrupt.WaitFor(std::min(left, kRetryInterval))) return result;
  }
}

base::Result<ExitCode> Health(const HealthSettings& settings, ServerClient& client,
                              Output& output) {
  const Question question = QuestionOf(settings);
  NEREID_ASSIGN_OR_RETURN(const bool is_good, Ask(settings, question, client));
  if (output.wants_json()) {
    rapidjson::Document document;
    document.SetObject();
    AddMember(document, document, question.quality, rapidjson::Value(is_good));
    output.PrintJson(document);
  } else {
    output.PrintText(fmt::format(
        "{} is {}\n", question.subject,
        is_good ? output.InStyle(Style::kGood, question.quality)
                : output.InStyle(Style::kBad, fmt::format("not {}", question.quality))));
  }
  return is_good ? ExitCode::kSuccess : ExitCode::kFailure;
}

}  // namespace

void AddHealth(Command& command) {
  auto& settings = command.Keep<HealthSettings>();
  command.Describe(
      "The exit status tells whether the server, or the model, is ready: 0 if so, 1 if not, 3 if "
      "there is no server. Meant for health checks of containers as well.");
  command.Positional("MODEL", settings.model, "The model to ask about instead of the server.")
      .Names(Hint::kModel);
  command.Option("--version", "N", settings.version, "This version of the model.");
  command.Flag("--live", settings.is_live_only, "Whether the server is alive, be it ready or not.");
  command.Option("--wait", "TIME", settings.wait,
                 "Waits so long for the server or the model to become ready.");
  AddServerOptions(command, settings.server);
  command.AddExample("nereid health", "Whether the server is ready.");
  command.AddExample("nereid health resnet --wait 60s && ./start-clients",
                     "Waits until a server is there and resnet is loaded.");
  command.OnRun([&settings](Invocation& invocation) {
    if (settings.model && settings.is_live_only) {
      return invocation.output.Fail(ExitCode::kUsage, "--live is about the server, not a model");
    }
    if (!settings.model && !settings.version.empty()) {
      return invocation.output.Fail(ExitCode::kUsage, "--version needs a model");
    }
    return AskServer(settings.server, invocation.output, [&](ServerClient& client) {
      return Health(settings, client, invocation.output);
    });
  });
}

}  // namespace nereid::cli
