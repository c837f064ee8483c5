// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/read_all.h"
#include "cli/model_file.h"
#include "cli/ports.h"
#include "config/parse.h"

namespace nereid::cli {
namespace {

using base::InvalidArgumentError;

base::Result<std::vector<ModelFile>> FindModels(const ServeSettings& settings) {
  std::vector<ModelFile> models;
  for (const std::string& argument : settings.models) {
    NEREID_ASSIGN_OR_RETURN(ModelFile model, RecognizeArgument(argument));
    models.push_back(std::move(model));
  }
  if (models.empty()) {
    return InvalidArgumentError("expected the path of a model, such as 'model.onnx'");
  }
  if (settings.name) {
    if (models.size() > 1) {
      return InvalidArgumentError("--name is for one model; several are named as NAME=PATH each");
    }
    NEREID_ASSIGN_OR_RETURN(models[0], WithName(std::move(models[0]), *settings.name));
  }
  NEREID_RETURN_IF_ERROR(CheckNames(models));
  return models;
}

base::Result<config::ModelConfig> ReadConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text = base::ReadAll(file);
  if (!file.is_open() || file.bad()) {
    return InvalidArgumentError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  return config::ParseModelConfigText(text, path);
}

// Reads what the options say about the only model to which they can apply.
base::Result<ModelSettings> ReadModelSettings(const ServeSettings& settings,
                                              const std::vector<ModelFile>& models) {
  ModelSettings model;
  const bool is_used = settings.max_batch_size || settings.config || !settings.inputs.empty() ||
                       !settings.outputs.empty();
  if (!is_used) return model;
  if (models.size() > 1 || models[0].kind != ModelFile::Kind::kFile) {
    return InvalidArgumentError(
        "--config, --input, --output and --max-batch-size are for one model file; in a repository, "
        "each model has its configuration");
  }
  if (settings.config) {
    NEREID_ASSIGN_OR_RETURN(model.config, ReadConfig(*settings.config));
  }
  if (settings.max_batch_size.value_or(0) < 0) {
    return InvalidArgumentError("--max-batch-size: expected 0 or more");
  }
  model.max_batch_size = settings.max_batch_size;
  for (const std::string& text : settings.inputs) {
    auto input = ParseTensor(text);
    if (!input.ok()) return input.status().WithPrefix("--input ");
    model.inputs.push_back(*std::move(input));
  }
  for (const std::string& text : settings.outputs) {
    auto output = ParseTensor(text);
    if (!output.ok()) return output.status().WithPrefix("--output ");
    model.outputs.push_back(
        {.name = output->name, .data_type = output->data_type, .dims = output->dims});
  }
  return model;
}

// Whether the user's own flags of the server say which port a service has.
bool Chooses(const std::vector<std::string>& flags, const std::string& flag) {
  return std::ranges::any_of(flags, [&](const std::string& given) {
    return given == flag || given.starts_with(flag + "=");
  });
}

// Adds the flags for the ports that the user's own flags do not choose.
base::Status AddPorts(const ServeSettings& settings, ServePlan& plan) {
  const std::string flags[] = {"--http-port", "--grpc-port", "--metrics-port"};
  const ServicePort all[] = {{"HTTP", "--port", 8000, settings.port},
                             {"gRPC", "--grpc-port", 8001, settings.grpc_port},
                             {"metrics", "--metrics-port", 8002, settings.metrics_port}};
  std::vector<ServicePort> services;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(all); ++i) {
    if (Chooses(settings.server_flags, flags[i])) continue;
    services.push_back(all[i]);
    names.push_back(flags[i]);
  }
  NEREID_ASSIGN_OR_RETURN(ChosenPorts chosen, ChoosePorts(services, [&](uint16_t port) {
                            return IsPortFree(settings.host, port);
                          }));
  for (size_t i = 0; i < names.size(); ++i) {
    plan.flags.push_back(fmt::format("{}={}", names[i], chosen.ports[i]));
  }
  plan.notes = std::move(chosen.notes);
  return base::OkStatus();
}

}  // namespace

base::Result<ServePlan> PlanServe(const ServeSettings& settings) {
  NEREID_ASSIGN_OR_RETURN(std::vector<ModelFile> models, FindModels(settings));
  NEREID_ASSIGN_OR_RETURN(const ModelSettings model_settings, ReadModelSettings(settings, models));
  ServePlan plan;
  NEREID_RETURN_IF_ERROR(AddPorts(settings, plan));
  NEREID_ASSIGN_OR_RETURN(plan.served, ServedModels::Create(std::move(models), model_settings));
  for (const std::string& repository : plan.served->repositories()) {
    plan.flags.push_back("--model-repository=" + repository);
  }
  for (const char* service : {"http", "grpc", "metrics"}) {
    plan.flags.push_back(fmt::format("--{}-address={}", service, settings.host));
  }
  if (settings.watch) {
    // The server waits for a better file instead of ending.
    plan.flags.insert(plan.flags.end(), {"--model-control-mode=poll", "--repository-poll-secs=1",
                                         "--exit-on-error=false"});
  }
  // Failures are told once, in words for those who have no repository; see DescribeFailure.
  if (!settings.verbose)
    plan.flags.insert(plan.flags.end(), {"--log-info=false", "--log-error=false"});
  plan.flags.insert(plan.flags.end(), settings.server_flags.begin(), settings.server_flags.end());
  return plan;
}

}  // namespace nereid::cli
