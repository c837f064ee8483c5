// SPDX-License-Identifier: Apache-2.0
// nereid load, nereid unload: on one server, on several at once, or on all of a repository.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/json.h"
#include "cli/live.h"
#include "cli/printable.h"
#include "cli/repository_wish.h"
#include "cli/server_list.h"
#include "http_client/url.h"

namespace nereid::cli {
namespace {

// Where the command goes: to one server or to several, or into a repository.
struct Targets {
  std::optional<std::string> repository;
  std::vector<std::string> servers;  // values of --servers; empty: to server.url
  // Loading takes as long as it takes.
  ServerOptions server{.timeout = Seconds(0)};
};

struct LoadSettings {
  std::string model;
  std::optional<std::string> config_file;
  Targets targets;
};

struct UnloadSettings {
  std::string model;
  bool has_dependents = false;
  Targets targets;
};

// What servers are asked to do with a model.
struct ControlCall {
  std::string model;
  std::string_view verb;  // the last part of the path
  std::string body;
};

// A version of the model in a server's index.
struct VersionState {
  std::string version;  // empty: the model has none
  std::string state;    // empty: it is not loaded
};

// Does it on one server, and returns the versions of the model as they are then.
base::Result<std::vector<VersionState>> Control(const ControlCall& call, ServerClient& client) {
  const std::string path =
      fmt::format("/v2/repository/models/{}/{}",
                  http_client::PercentEncode(call.model, /*keep_slashes=*/false), call.verb);
  NEREID_RETURN_IF_ERROR(client.Post(path, call.body).status());
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document index,
                          client.PostJson("/v2/repository/index", "{}"));
  std::vector<VersionState> versions;
  if (!index.IsArray()) return versions;
  for (const rapidjson::Value& entry : index.GetArray()) {
    if (TextOf(entry, "name") != call.model) continue;
    versions.push_back({.version = std::string(TextOf(entry, "version")),
                        .state = std::string(TextOf(entry, "state"))});
  }
  return versions;
}

rapidjson::Value VersionsJson(const std::vector<VersionState>& versions,
                              rapidjson::Document& document) {
  rapidjson::Value list(rapidjson::kArrayType);
  for (const VersionState& version : versions) {
    rapidjson::Value one(rapidjson::kObjectType);
    AddMember(document, one, "version", TextValue(version.version, document));
    AddMember(document, one, "state", TextValue(version.state, document));
    list.PushBack(one, document.GetAllocator());
  }
  return list;
}

// Returns ", version 1: READY", or what fits a version that is nameless or not loaded.
std::string VersionText(const VersionState& version) {
  return fmt::format("{}: {}",
                     version.version.empty() ? "" : fmt::format(", version {}", version.version),
                     version.state.empty() ? "not loaded" : version.state);
}

base::Result<ExitCode> ControlOne(const ControlCall& call, ServerClient& client, Output& output) {
  NEREID_ASSIGN_OR_RETURN(const std::vector<VersionState> versions, Control(call, client));
  if (output.wants_json()) {
    rapidjson::Document result;
    result.SetObject();
    AddMember(result, result, "model", TextValue(ValidUtf8(call.model), result));
    AddMember(result, result, "versions", VersionsJson(versions, result));
    output.PrintJson(result);
    return ExitCode::kSuccess;
  }
  for (const VersionState& version : versions) {
    output.PrintText(fmt::format("{}{}\n", call.model, VersionText(version)));
  }
  return ExitCode::kSuccess;
}

// What happened on one of several servers.
struct Outcome {
  std::string url;
  base::Result<std::vector<VersionState>> versions = base::InternalError("was not asked");

  std::string_view Word() const {
    if (versions.ok()) return "done";
    return ExitCodeOf(versions.status()) == ExitCode::kUnreachable ? "unreachable" : "failed";
  }
};

void PrintOutcomesJson(const ControlCall& call, const std::vector<Outcome>& outcomes,
                       Output& output) {
  rapidjson::Document result;
  result.SetObject();
  AddMember(result, result, "model", TextValue(ValidUtf8(call.model), result));
  rapidjson::Value servers(rapidjson::kArrayType);
  for (const Outcome& outcome : outcomes) {
    rapidjson::Value one(rapidjson::kObjectType);
    AddMember(result, one, "url", TextValue(ValidUtf8(outcome.url), result));
    AddMember(result, one, "result", TextValue(outcome.Word(), result));
    if (outcome.versions.ok()) {
      AddMember(result, one, "versions", VersionsJson(*outcome.versions, result));
    } else {
      AddMember(result, one, "error",
                TextValue(ValidUtf8(outcome.versions.status().message()), result));
    }
    servers.PushBack(one, result.GetAllocator());
  }
  AddMember(result, result, "servers", std::move(servers));
  output.PrintJson(result);
}

void PrintOutcomes(const ControlCall& call, const std::vector<Outcome>& outcomes, Output& output) {
  Table table({{.title = "SERVER"}, {.title = "RESULT"}, {.title = "DETAILS"}});
  for (const Outcome& outcome : outcomes) {
    std::string details;
    if (outcome.versions.ok()) {
      details = call.model;
      for (const VersionState& version : *outcome.versions) details += VersionText(version);
      if (outcome.versions->empty()) details += ": no versions";
    } else {
      details = outcome.versions.status().message();
    }
    table.Add({outcome.url,
               {std::string(outcome.Word()), outcome.versions.ok() ? Style::kGood : Style::kBad},
               std::move(details)});
  }
  output.PrintTable(table);
}

// A refusal weighs more than a server that is away, because trying again does not help.
ExitCode WorstOf(const std::vector<Outcome>& outcomes) {
  ExitCode worst = ExitCode::kSuccess;
  for (const Outcome& outcome : outcomes) {
    const ExitCode code = ExitCodeOf(outcome.versions.status());
    if (code == ExitCode::kSuccess) continue;
    if (code != ExitCode::kUnreachable) return ExitCode::kFailure;
    worst = code;
  }
  return worst;
}

base::Result<ExitCode> ControlAll(const ControlCall& call, const Targets& targets, Output& output) {
  NEREID_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                          ReadServerList(targets.servers));
  NEREID_ASSIGN_OR_RETURN(const auto clients, CreateClients(addresses, targets.server));
  std::vector<Outcome> outcomes(clients.size());
  AskAll(clients, [&](size_t place, ServerClient& client) {
    outcomes[place] = {.url = client.url(), .versions = Control(call, client)};
  });
  if (output.wants_json()) {
    PrintOutcomesJson(call, outcomes, output);
  } else {
    PrintOutcomes(call, outcomes, output);
  }
  return WorstOf(outcomes);
}

ExitCode RunControl(const base::Result<ControlCall>& call, const Targets& targets, Output& output) {
  if (!call.ok()) return output.Fail(ExitCodeOf(call.status()), call.status().message());
  if (targets.servers.empty()) {
    return AskServer(targets.server, output,
                     [&](ServerClient& client) { return ControlOne(*call, client, output); });
  }
  const base::Result<ExitCode> code = ControlAll(*call, targets, output);
  return code.ok() ? *code : output.Fail(ExitCodeOf(code.status()), code.status().message());
}

// Returns {"parameters": {NAME: value}}.
std::string Parameters(const char* name, rapidjson::Value value, rapidjson::Document& document) {
  rapidjson::Value parameters(rapidjson::kObjectType);
  AddMember(document, parameters, name, std::move(value));
  document.SetObject();
  AddMember(document, document, "parameters", std::move(parameters));
  return WriteJson(document);
}

base::Result<ControlCall> LoadCall(const LoadSettings& settings) {
  ControlCall call{.model = settings.model, .verb = "load", .body = "{}"};
  if (settings.config_file) {
    NEREID_ASSIGN_OR_RETURN(const std::string config, ReadFile(*settings.config_file));
    rapidjson::Document document;
    call.body = Parameters("config", TextValue(config, document), document);
  }
  return call;
}

ControlCall UnloadCall(const UnloadSettings& settings) {
  ControlCall call{.model = settings.model, .verb = "unload", .body = "{}"};
  if (settings.has_dependents) {
    rapidjson::Document document;
    call.body = Parameters("unload_dependents", rapidjson::Value(true), document);
  }
  return call;
}

// Writes into the repository. `extra` is an option that has a meaning only where a server is asked;
// empty: none is given.
ExitCode RunWish(const std::string& model, bool is_loaded, const Targets& targets,
                 std::string_view extra, Output& output) {
  if (!targets.servers.empty()) extra = "--servers";
  if (!extra.empty()) {
    return output.Fail(ExitCode::kUsage,
                       fmt::format("{} cannot be given with --repository", extra));
  }
  return WriteWish({.repository = *targets.repository, .model = model, .is_loaded = is_loaded},
                   output);
}

void AddTargets(Command& command, Targets& targets) {
  AddServerList(command, targets.servers);
  command
      .Option("--repository", "PATH", targets.repository,
              "Asks no server, but writes into this repository, a folder or a place in an object "
              "store, what all servers of it are to do. They notice within a second (those of an "
              "object store only if they were started with --generation-poll-ms), and servers "
              "that start later do the same. Servers in the control mode none, the default, do "
              "not.")
      .Excludes("--url")
      .Names(Hint::kFolder);
  AddServerOptions(command, targets.server);
}

}  // namespace

void AddLoad(Command& command) {
  auto& settings = command.Keep<LoadSettings>();
  command.Describe(
      "A model that is loaded already is loaded again if its files have changed. The command "
      "returns when the model is ready; with --repository, as soon as the wish is written. A "
      "server that is asked must run with --model-control-mode=explicit or ondemand.");
  command.Positional("MODEL", settings.model, "The model to load.").Names(Hint::kModel);
  command
      .Option("--config", "FILE", settings.config_file,
              "A configuration, as JSON, instead of the one in the repository.")
      .Names(Hint::kFile);
  AddTargets(command, settings.targets);
  command.AddExample("nereid load resnet", "Loads resnet, or loads it again.");
  command.AddExample("nereid load resnet --servers http://a:8000,http://b:8000",
                     "Loads resnet on both servers, and says for each what happened.");
  command.AddExample("nereid load resnet --repository s3://bucket/models",
                     "Loads resnet on all servers of this repository.");
  command.OnRun([&settings](Invocation& invocation) {
    if (settings.targets.repository) {
      return RunWish(settings.model, /*is_loaded=*/true, settings.targets,
                     settings.config_file ? "--config" : "", invocation.output);
    }
    return RunControl(LoadCall(settings), settings.targets, invocation.output);
  });
}

void AddUnload(Command& command) {
  auto& settings = command.Keep<UnloadSettings>();
  command.Describe(
      "All versions go as soon as their requests are done. A server that is asked must run with "
      "--model-control-mode=explicit or ondemand.");
  command.Positional("MODEL", settings.model, "The model to unload.").Names(Hint::kModel);
  command.Flag("--dependents", settings.has_dependents,
               "Unloads the models that an ensemble is made of as well.");
  AddTargets(command, settings.targets);
  command.AddExample("nereid unload resnet", "Unloads resnet.");
  command.AddExample("nereid unload resnet --servers http://a:8000,http://b:8000",
                     "Unloads resnet on both servers, and says for each what happened.");
  command.AddExample("nereid unload resnet --repository s3://bucket/models",
                     "Unloads resnet on all servers of this repository.");
  command.OnRun([&settings](Invocation& invocation) {
    if (settings.targets.repository) {
      return RunWish(settings.model, /*is_loaded=*/false, settings.targets,
                     settings.has_dependents ? "--dependents" : "", invocation.output);
    }
    return RunControl(UnloadCall(settings), settings.targets, invocation.output);
  });
}

}  // namespace nereid::cli
