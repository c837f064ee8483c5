// SPDX-License-Identifier: Apache-2.0
// nereid load, nereid unload
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/json.h"
#include "cli/live.h"
#include "http_client/url.h"

namespace nereid::cli {
namespace {

struct LoadSettings {
  std::string model;
  std::optional<std::string> config_file;
  // Loading takes as long as it takes.
  ServerOptions server{.timeout = Seconds(0)};
};

struct UnloadSettings {
  std::string model;
  bool has_dependents = false;
  ServerOptions server{.timeout = Seconds(0)};
};

std::string RepositoryPath(std::string_view model, std::string_view verb) {
  return fmt::format("/v2/repository/models/{}/{}",
                     http_client::PercentEncode(model, /*keep_slashes=*/false), verb);
}

// Shows the versions of the model as they are now.
base::Result<ExitCode> ShowStates(std::string_view model, ServerClient& client, Output& output) {
  NEREID_ASSIGN_OR_RETURN(rapidjson::Document index, client.PostJson("/v2/repository/index", "{}"));
  rapidjson::Document result;
  result.SetObject();
  AddMember(result, result, "model", TextValue(model, result));
  rapidjson::Value versions(rapidjson::kArrayType);
  if (index.IsArray()) {
    for (rapidjson::Value& entry : index.GetArray()) {
      if (TextOf(entry, "name") != model) continue;
      const std::string state(TextOf(entry, "state"));
      const std::string version(TextOf(entry, "version"));
      if (!output.wants_json()) {
        output.PrintText(fmt::format("{}{}: {}\n", model,
                                     version.empty() ? "" : fmt::format(", version {}", version),
                                     state.empty() ? "not loaded" : state));
      }
      rapidjson::Value one(rapidjson::kObjectType);
      AddMember(result, one, "version", TextValue(version, result));
      AddMember(result, one, "state", TextValue(state, result));
      versions.PushBack(one, result.GetAllocator());
    }
  }
  AddMember(result, result, "versions", std::move(versions));
  if (output.wants_json()) output.PrintJson(result);
  return ExitCode::kSuccess;
}

// Returns {"parameters": {NAME: value}}.
std::string Parameters(const char* name, rapidjson::Value value, rapidjson::Document& document) {
  rapidjson::Value parameters(rapidjson::kObjectType);
  AddMember(document, parameters, name, std::move(value));
  document.SetObject();
  AddMember(document, document, "parameters", std::move(parameters));
  return WriteJson(document);
}

base::Result<ExitCode> Load(const LoadSettings& settings, ServerClient& client, Output& output) {
  std::string body = "{}";
  if (settings.config_file) {
    NEREID_ASSIGN_OR_RETURN(const std::string config, ReadFile(*settings.config_file));
    rapidjson::Document document;
    body = Parameters("config", TextValue(config, document), document);
  }
  NEREID_RETURN_IF_ERROR(
      client.Post(RepositoryPath(settings.model, "load"), std::move(body)).status());
  return ShowStates(settings.model, client, output);
}

base::Result<ExitCode> Unload(const UnloadSettings& settings, ServerClient& client,
                              Output& output) {
  std::string body = "{}";
  if (settings.has_dependents) {
    rapidjson::Document document;
    body = Parameters("unload_dependents", rapidjson::Value(true), document);
  }
  NEREID_RETURN_IF_ERROR(
      client.Post(RepositoryPath(settings.model, "unload"), std::move(body)).status());
  return ShowStates(settings.model, client, output);
}

}  // namespace

void AddLoad(Command& command) {
  auto& settings = command.Keep<LoadSettings>();
  command.Describe(
      "A model that is loaded already is loaded again if its files have changed. The command "
      "returns "
      "when the model is ready. The server must run with --model-control-mode=explicit.");
  command.Positional("MODEL", settings.model, "The model to load.").Names(Hint::kModel);
  command
      .Option("--config", "FILE", settings.config_file,
              "A configuration, as JSON, instead of the one in the repository.")
      .Names(Hint::kFile);
  AddServerOptions(command, settings.server);
  command.AddExample("nereid load resnet", "Loads resnet, or loads it again.");
  command.OnRun([&settings](Invocation& invocation) {
    return AskServer(settings.server, invocation.output, [&](ServerClient& client) {
      return Load(settings, client, invocation.output);
    });
  });
}

void AddUnload(Command& command) {
  auto& settings = command.Keep<UnloadSettings>();
  command.Describe(
      "All versions go as soon as their requests are done. The server must run with "
      "--model-control-mode=explicit.");
  command.Positional("MODEL", settings.model, "The model to unload.").Names(Hint::kModel);
  command.Flag("--dependents", settings.has_dependents,
               "Unloads the models that an ensemble is made of as well.");
  AddServerOptions(command, settings.server);
  command.AddExample("nereid unload resnet", "Unloads resnet.");
  command.OnRun([&settings](Invocation& invocation) {
    return AskServer(settings.server, invocation.output, [&](ServerClient& client) {
      return Unload(settings, client, invocation.output);
    });
  });
}

}  // namespace nereid::cli
