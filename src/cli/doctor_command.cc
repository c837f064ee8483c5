// SPDX-License-Identifier: Apache-2.0
// nereid doctor
#include <tuple>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/ports.h"
#include "cli/printable.h"
#include "doctor/doctor.h"
#include "engine/directories.h"

namespace nereid::cli {
namespace {

using doctor::Level;

struct DoctorSettings {
  std::vector<std::string> repositories;
  std::string host = "0.0.0.0";  // as the server's default
  int http_port = 8000;
  int grpc_port = 8001;
  int metrics_port = 8002;
  doctor::PluginFolders plugins;
  bool is_brief = false;
};

base::Result<std::vector<doctor::Port>> PortsOf(const DoctorSettings& settings) {
  constexpr int kMaxPort = 65'535;
  std::vector<doctor::Port> ports;
  for (const auto& [id, service, number] :
       {std::tuple{"http", "HTTP", settings.http_port},
        std::tuple{"grpc", "gRPC", settings.grpc_port},
        std::tuple{"metrics", "metrics", settings.metrics_port}}) {
    const std::string flag = fmt::format("--{}-port", id);
    if (number < 1 || number > kMaxPort) {
      return base::InvalidArgumentError(
          fmt::format("{} {}: expected a port from 1 to {}", flag, number, kMaxPort));
    }
    const auto port = static_cast<uint16_t>(number);
    ports.push_back({id, service, flag, port, IsPortFree(settings.host, port)});
  }
  return ports;
}

base::Result<doctor::Report> Examine(const DoctorSettings& settings, const ServerProgram& server) {
  doctor::Options options{.version = std::string(server.version),
                          .repositories = settings.repositories,
                          .plugins = settings.plugins};
  NEREID_ASSIGN_OR_RETURN(options.ports, PortsOf(settings));
  doctor::PluginFolders& plugins = options.plugins;
  if (plugins.backends.empty()) plugins.backends = engine::DefaultBackendDirectory();
  if (plugins.caches.empty()) {
    plugins.caches = engine::DefaultDirectoryBeside(plugins.backends, "caches");
  }
  if (plugins.repository_agents.empty()) {
    plugins.repository_agents = engine::DefaultDirectoryBeside(plugins.backends, "repoagents");
  }
  return doctor::Examine(options);
}

Style StyleOf(Level level) {
  if (level == Level::kProblem) return Style::kBad;
  return level == Level::kNote ? Style::kWarning : Style::kGood;
}

// Everything is on the standard output, so that it can be pasted into a report of a bug.
void PrintText(const doctor::Report& report, bool is_brief, Output& output) {
  constexpr std::string_view kIndentation = "           ";
  std::string_view area;
  for (const doctor::Finding& finding : report.findings) {
    if (is_brief && finding.level == Level::kOk) continue;
    if (AreaOf(finding) != area) {
      area = AreaOf(finding);
      output.PrintText(fmt::format("{}\n", output.InStyle(Style::kBold, area)));
    }
    const std::string level(LevelName(finding.level));
    output.PrintText(fmt::format("  {}{}{}\n", output.InStyle(StyleOf(finding.level), level),
                                 kIndentation.substr(level.size() + 2), Printable(finding.text)));
    if (!finding.advice.empty()) {
      output.PrintText(fmt::format("{}{}\n", kIndentation, Printable(finding.advice)));
    }
  }
  if (!is_brief) {
    output.PrintText(fmt::format("{}\n", output.InStyle(Style::kBold, "versions")));
    for (const auto& [name, version] : report.versions) {
      output.PrintText(fmt::format("  {}: {}\n", name, Printable(version)));
    }
  }
  output.PrintText(fmt::format("{}, {}; {} ok\n", Counted(report.Count(Level::kProblem), "problem"),
                               Counted(report.Count(Level::kNote), "note"),
                               report.Count(Level::kOk)));
}

rapidjson::Document ToJson(const doctor::Report& report) {
  rapidjson::Document document(rapidjson::kObjectType);
  auto& allocator = document.GetAllocator();
  document.AddMember("problems", uint64_t{report.Count(Level::kProblem)}, allocator);
  document.AddMember("notes", uint64_t{report.Count(Level::kNote)}, allocator);
  rapidjson::Value findings(rapidjson::kArrayType);
  for (const doctor::Finding& finding : report.findings) {
    rapidjson::Value one(rapidjson::kObjectType);
    one.AddMember("id", TextValue(finding.id, document), allocator);
    one.AddMember("level", TextValue(LevelName(finding.level), document), allocator);
    one.AddMember("text", TextValue(finding.text, document), allocator);
    one.AddMember("advice", TextValue(finding.advice, document), allocator);
    findings.PushBack(one, allocator);
  }
  document.AddMember("findings", findings, allocator);
  rapidjson::Value versions(rapidjson::kArrayType);
  for (const auto& [name, version] : report.versions) {
    rapidjson::Value one(rapidjson::kObjectType);
    one.AddMember("name", TextValue(name, document), allocator);
    one.AddMember("version", TextValue(version, document), allocator);
    versions.PushBack(one, allocator);
  }
  document.AddMember("versions", versions, allocator);
  return document;
}

ExitCode Run(const DoctorSettings& settings, Invocation& invocation) {
  Output& output = invocation.output;
  // The findings say all; the log of libraries that are tried would stand between them.
  if (const base::Status status =
          base::ConfigureLog({.info = false, .warning = false, .error = false});
      !status.ok()) {
    return output.Fail(ExitCode::kFailure, status.message());
  }
  const base::Result<doctor::Report> report = Examine(settings, invocation.server);
  if (!report.ok()) return output.Fail(ExitCode::kUsage, report.status().message());
  if (output.wants_json()) {
    output.PrintJson(ToJson(*report));
  } else {
    PrintText(*report, settings.is_brief, output);
  }
  return report->Count(Level::kProblem) == 0 ? ExitCode::kSuccess : ExitCode::kFailure;
}

}  // namespace

void AddDoctor(Command& command) {
  auto& settings = command.Keep<DoctorSettings>();
  command.Describe(
      "Looks at ports, limits of files and memory, control groups, the processor, GPUs, plug-ins "
      "and "
      "the frameworks that they need (each is really opened, in a process of its own), folders, "
      "clocks and settings of the kernel, and says for each whether it is fine, and else what to "
      "do. "
      "Ends with the versions of everything, for a report of a bug. Nothing is changed, and "
      "nothing "
      "is sent anywhere. The exit status is 1 if there is a problem; notes do not count.");
  command
      .Option("--repository,-r", "FOLDER", settings.repositories,
              "A model repository, which must be readable.")
      .Names(Hint::kFolder);
  command.Flag("--brief", settings.is_brief, "Leaves out what is fine, and the versions.");
  constexpr const char* kServer = "The server that will run here";
  command
      .Option("--host", "ADDRESS", settings.host,
              "The address that it will listen on, a numeric one.")
      .In(kServer);
  command.Option("--http-port", "PORT", settings.http_port, "Its port of HTTP.").In(kServer);
  command.Option("--grpc-port", "PORT", settings.grpc_port, "Its port of gRPC.").In(kServer);
  command.Option("--metrics-port", "PORT", settings.metrics_port, "Its port of the metrics.")
      .In(kServer);
  command
      .Option("--backend-directory", "FOLDER", settings.plugins.backends,
              "Its backends. By default those of this program.")
      .In(kServer)
      .Names(Hint::kFolder);
  command
      .Option("--cache-directory", "FOLDER", settings.plugins.caches,
              "Its caches. By default those beside the backends.")
      .In(kServer)
      .Names(Hint::kFolder);
  command
      .Option("--repoagent-directory", "FOLDER", settings.plugins.repository_agents,
              "Its repository agents. By default those beside the backends.")
      .In(kServer)
      .Names(Hint::kFolder);
  command.AddExample("nereid doctor", "Examines this machine.");
  command.AddExample("nereid doctor --repository models --brief",
                     "Shows what is wrong, also with the permissions of a repository.");
  command.AddExample("nereid doctor --json > doctor.json", "For a report of a bug, or a program.");
  command.OnRun([&settings](Invocation& invocation) { return Run(settings, invocation); });
}

}  // namespace nereid::cli
