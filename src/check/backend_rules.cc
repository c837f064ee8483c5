// SPDX-License-Identifier: Apache-2.0
// Rules about what a backend makes of its settings, and about libraries of the server.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "check/backend_facts.h"
#include "check/rules.h"
#include "config/openai_contract.h"
#include "config/paths.h"
#include "engine/traffic_rules.h"

namespace nereid::check {
namespace {

namespace fs = std::filesystem;
using config::JoinPath;

constexpr std::string_view kStrategyPath = "TRITON_BATCH_STRATEGY_PATH";
constexpr std::string_view kMetricFamily = "nv_inference_first_response_histogram_ms";

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string Suggested(std::string_view name, std::span<const std::string_view> names) {
  const std::string_view nearest = base::NearestName(name, names);
  return nearest.empty() ? std::string() : fmt::format("Did you mean '{}'?", nearest);
}

// Returns the folders of `directory` that have a library of their name, or a script: backends or
// agents.
std::vector<std::string> InstalledIn(const std::string& directory, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::string folder = JoinPath(directory, name);
    const bool has_library = Exists(JoinPath(folder, fmt::format("{}{}.so", prefix, name)));
    if (has_library || Exists(JoinPath(folder, "model.py"))) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Returns the first of the folders in which the server looks for the backend that has it, or
// nothing.
std::optional<std::string> FindBackend(const ModelView& model, const CheckOptions& options) {
  const std::string& backend = model.config->backend;
  std::string place = JoinPath(options.backend_directory, backend);
  const std::string library = fmt::format("libtriton_{}.so", backend);
  const std::string& runtime = model.config->runtime;
  std::vector<std::string> folders;
  for (const int64_t version : model.served) folders.push_back(model.VersionFolder(version));
  folders.insert(folders.end(), {model.folder, place});
  const auto found = std::ranges::find_if(folders, [&](const std::string& folder) {
    return Exists(JoinPath(folder, runtime.empty() ? library : runtime));
  });
  if (found != folders.end()) return *found;
  if (runtime.empty() && Exists(JoinPath(place, "model.py"))) return place;
  return std::nullopt;
}

void CheckRuntime(const ModelView& model, const std::string& folder, Findings& findings) {
  const std::string& runtime = model.config->runtime;
  if (runtime.empty()) return;
  const auto escapes = config::PathEscapes(JoinPath(folder, runtime), folder);
  if (escapes.ok() && !*escapes) return;
  findings.AtField(
      "path-outside", "runtime",
      {.text = fmt::format("backend library name '{}' escapes backend directory '{}', for model "
                           "'{}', check model config runtime field",
                           runtime, folder, model.name),
       .found = fmt::format("'{}'", runtime),
       .expected = "the file name of a library"});
}

void CheckInstalled(const ModelView& model, const CheckOptions& options, Findings& findings) {
  const std::string& backend = model.config->backend;
  if (options.backend_directory.empty() || backend.empty()) return;
  if (const auto folder = FindBackend(model, options)) {
    CheckRuntime(model, *folder, findings);
    return;
  }
  if (const std::string& runtime = model.config->runtime; !runtime.empty()) {
    findings.AtField("backend-not-installed", "runtime",
                     {.text = fmt::format("backend '{}' has no library '{}', neither in '{}' nor "
                                          "in the model's folders",
                                          backend, runtime, options.backend_directory),
                      .found = fmt::format("'{}'", runtime),
                      .expected = "the file name of a library"});
    return;
  }
  const std::vector<std::string> installed = InstalledIn(options.backend_directory, "libtriton_");
  const std::vector<std::string_view> names(installed.begin(), installed.end());
  findings.AtField(
      "backend-not-installed", model.Has("backend") ? "backend" : "platform",
      {.text = fmt::format("there is no backend '{}' in '{}'", backend, options.backend_directory),
       .found = fmt::format("'{}'", backend),
       .expected = names.empty() ? "a backend" : base::QuotedList(names),
       .suggestion = Suggested(backend, names)});
}

void CheckAgents(const ModelView& model, const CheckOptions& options, Findings& findings) {
  if (options.agent_directory.empty() || !model.config->model_repository_agents) return;
  const auto& agents = *model.config->model_repository_agents;
  const std::vector<std::string> installed =
      InstalledIn(options.agent_directory, "libtritonrepoagent_");
  const std::vector<std::string_view> names(installed.begin(), installed.end());
  for (size_t i = 0; i < agents.size(); ++i) {
    const std::string& name = agents[i].name;
    const std::string library = fmt::format("libtritonrepoagent_{}.so", name);
    if (Exists(JoinPath(JoinPath(options.agent_directory, name), library))) continue;
    findings.AtField("agent-not-installed",
                     fmt::format("model_repository_agents.agents[{}].name", i),
                     {.text = fmt::format("there is no repository agent '{}' in '{}'", name,
                                          options.agent_directory),
                      .found = fmt::format("'{}'", name),
                      .expected = names.empty() ? "an agent" : base::QuotedList(names),
                      .suggestion = Suggested(name, names)});
  }
}

// Parameters that the server itself reads, with every backend.
bool IsOfServer(std::string_view name) {
  return name == kStrategyPath || IsOfIsolation(name) || config::IsOfOpenAi(name) ||
         engine::IsTrafficParameter(name);
}

// The contract for the routes of OpenAI's API, of models whose tensors are written down.
void CheckOpenAi(const ModelView& model, Findings& findings) {
  if (model.config->input.empty() || model.config->output.empty()) return;
  const base::Status status = config::ReadOpenAiContract(*model.config).status();
  if (status.ok()) return;
  const std::string text(status.message());
  // The message begins with the parameter's name in quotation marks.
  const size_t begin = text.find('\'') + 1;
  const std::string name = text.substr(begin, text.find('\'', begin) - begin);
  findings.AtField("parameter-value", fmt::format("parameters['{}']", name),
                   {.text = text,
                    .found = fmt::format("'{}'", model.config->parameters.at(name)),
                    .expected = "a contract as docs/openai.md describes it",
                    .suggestion = "docs/openai.md lists the tensors that each task needs."});
}

// Labels of versions, canary and shadow.
void CheckTraffic(const ModelView& model, Findings& findings) {
  const auto first = std::ranges::find_if(model.config->parameters, [](const auto& parameter) {
    return engine::IsTrafficParameter(parameter.first);
  });
  if (first == model.config->parameters.end()) return;
  const base::Status status = engine::TrafficRulesOf(*model.config).status();
  if (status.ok()) return;
  findings.AtField("parameter-value", fmt::format("parameters['{}']", first->first),
                   {.text = std::string(status.message()),
                    .found = fmt::format("'{}'", first->second),
                    .expected = "rules that make sense together",
                    .suggestion = "docs/versions.md lists the parameters."});
}

const ParameterFact* FindParameter(const BackendFacts& facts, std::string_view name) {
  for (const ParameterFact& known : facts.parameters) {
    const bool is_family = known.name.ends_with('*');
    const std::string_view begin = known.name.substr(0, known.name.size() - (is_family ? 1 : 0));
    if (is_family ? name.starts_with(begin) : name == begin) return &known;
  }
  return nullptr;
}

void CheckParameters(const ModelView& model, const BackendFacts& facts, Findings& findings) {
  if (facts.takes_any_parameter) return;
  std::vector<std::string_view> names;
  for (const ParameterFact& known : facts.parameters) names.push_back(known.name);
  for (const auto& [name, value] : model.config->parameters) {
    if (IsOfServer(name)) continue;
    const std::string field = fmt::format("parameters['{}']", name);
    const ParameterFact* const known = FindParameter(facts, name);
    if (known == nullptr) {
      findings.AtField(
          "parameter-unknown", field,
          {.text = fmt::format("backend '{}' does not read the parameter '{}'", facts.name, name),
           .found = fmt::format("'{}'", name),
           .expected = names.empty() ? "no parameters" : base::QuotedList(names),
           .suggestion = Suggested(name, names)});
    } else if (!Understands(known->type, value)) {
      findings.AtField(
          "parameter-value", field + ".string_value",
          {.text = fmt::format("failed to convert '{}' of the parameter '{}'", value, name),
           .found = fmt::format("'{}'", value),
           .expected = known->type == ParameterType::kBool ? "true or false" : "a number"});
    }
  }
}

// Checks the field `optimization`.
class OptimizationCheck {
 public:
  OptimizationCheck(const ModelView& model, const BackendFacts& facts, Findings& findings)
      : model_(model), facts_(facts), findings_(findings) {}

  void Run() {
    const config::OptimizationPolicy& policy = *model_.config->optimization;
    if (policy.graph_level && !facts_.reads_graph_level) Unused("graph");
    if (policy.cuda && !facts_.reads_cuda) Unused("cuda");
    if (policy.priority != config::OptimizationPolicy::Priority::kDefault &&
        !facts_.reads_priority) {
      Unused("priority");
    }
    if (policy.eager_batching) Unused("eager_batching");
    if (!policy.execution_accelerators) return;
    List("cpu_execution_accelerator", policy.execution_accelerators->cpu_execution_accelerator);
    List("gpu_execution_accelerator", policy.execution_accelerators->gpu_execution_accelerator);
  }

 private:
  void Unused(const std::string& member) {
    findings_.AtField(
        "optimization-unused", "optimization." + member,
        {.text = fmt::format("backend '{}' does not read optimization.{}", facts_.name, member),
         .found = member,
         .expected = "settings that the backend reads"});
  }

  void List(const std::string& list,
            const std::vector<config::OptimizationPolicy::Accelerator>& accelerators) {
    const std::string member = "execution_accelerators." + list;
    if (facts_.accelerators.empty()) {
      if (!accelerators.empty()) Unused(member);
      return;
    }
    for (size_t i = 0; i < accelerators.size(); ++i) {
      const std::string& name = accelerators[i].name;
      if (std::ranges::find(facts_.accelerators, name) != facts_.accelerators.end()) continue;
      findings_.AtField(
          "accelerator-unknown", fmt::format("optimization.{}[{}].name", member, i),
          {.text = fmt::format("unknown Execution Accelerator '{}' is requested", name),
           .found = fmt::format("'{}'", name),
           .expected = base::QuotedList(facts_.accelerators),
           .suggestion = Suggested(name, facts_.accelerators)});
    }
  }

  const ModelView& model_;
  const BackendFacts& facts_;
  Findings& findings_;
};

void CheckStrategyLibrary(const ModelView& model, Findings& findings) {
  const auto path = model.config->parameters.find(std::string(kStrategyPath));
  if (path == model.config->parameters.end() || model.config->sequence_batching() != nullptr)
    return;
  const auto escapes = config::PathEscapes(path->second, model.folder);
  // A path outside has a finding of its own.
  if (!escapes.ok() || *escapes || Exists(path->second)) return;
  findings.AtField("batch-strategy-missing", fmt::format("parameters['{}']", kStrategyPath),
                   {.text = fmt::format("Batching library path not found: {}", path->second),
                    .found = fmt::format("'{}'", path->second),
                    .expected = "a library in the model's folder"});
}

void CheckEnvironment(const ModelView& model, Findings& findings) {
  constexpr std::string_view kFolder = "$$TRITON_MODEL_DIRECTORY";
  const auto found = model.config->parameters.find("EXECUTION_ENV_PATH");
  if (found == model.config->parameters.end() || found->second.empty()) return;
  std::string path = found->second;
  if (const size_t at = path.find(kFolder); at != std::string::npos) {
    path.replace(at, kFolder.size(), model.folder);
  }
  if (Exists(path)) return;
  findings.AtField("python-environment", "parameters['EXECUTION_ENV_PATH'].string_value",
                   {.text = fmt::format("Failed to get the canonical path for {}.", path),
                    .found = fmt::format("'{}'", found->second),
                    .expected = "a folder or an archive"});
}

void CheckMetrics(const ModelView& model, Findings& findings) {
  if (!model.config->model_metrics) return;
  const auto& controls = *model.config->model_metrics;
  for (size_t i = 0; i < controls.size(); ++i) {
    const std::string family = controls[i].metric_family.value_or("");
    if (family.empty() || family == kMetricFamily) continue;
    findings.AtField(
        "metric-family",
        fmt::format("model_metrics.metric_control[{}].metric_identifier.family", i),
        {.text = fmt::format("Metric family '{}' in 'metric_identifier' is not a customizable "
                             "metric in Triton core.",
                             family),
         .found = fmt::format("'{}'", family),
         .expected = fmt::format("'{}'", kMetricFamily)});
  }
}

}  // namespace

void CheckBackend(const ModelView& model, const CheckOptions& options, Findings& findings) {
  CheckAgents(model, options, findings);
  CheckMetrics(model, findings);
  CheckOpenAi(model, findings);
  CheckTraffic(model, findings);
  if (model.config->ensemble_scheduling() != nullptr) return;
  const bool has_files = !AgentsBringFiles(model);
  if (has_files) {
    CheckInstalled(model, options, findings);
    CheckStrategyLibrary(model, findings);
  }
  CheckIsolation(model, findings);
  const BackendFacts* const facts = FactsOf(model.config->backend);
  if (facts == nullptr || !model.config->runtime.empty()) return;
  CheckParameters(model, *facts, findings);
  if (model.config->optimization) OptimizationCheck(model, *facts, findings).Run();
  if (has_files && facts->name == "python") CheckEnvironment(model, findings);
}

}  // namespace nereid::check
