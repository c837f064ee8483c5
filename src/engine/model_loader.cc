// SPDX-License-Identifier: Apache-2.0
#include "engine/model_loader.h"

#include <cstdlib>
#include <set>

#include "backend_host/backend_model.h"
#include "backend_host/batch_strategy.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/temporary_folder.h"
#include "config/initial_states.h"
#include "config/labels.h"
#include "config/validate.h"
#include "engine/metrics.h"
#include "engine/model_parameters.h"
#include "engine/traffic_rules.h"
#include "engine/warm_up.h"
#include "schedule/batch_scheduler.h"
#include "schedule/cache_key.h"
#include "schedule/caching_scheduler.h"
#include "schedule/ensemble_scheduler.h"
#include "schedule/instance_change.h"
#include "schedule/sequence_scheduler.h"

namespace nereid::engine {
namespace {

// Replaces the folder of files from a load request by the model's name: clients do not need its
// path.
base::Status HideFolder(const base::Status& status, const repository::ModelSource& source) {
  if (status.ok()) return status;
  return {status.code(), base::HideTemporaryFolder(std::string(status.message()),
                                                   source.model_folder, source.name)};
}

core::ModelTensor CompileTensor(const std::string& name, tensor::DataType type,
                                const std::vector<int64_t>& dims,
                                const std::optional<std::vector<int64_t>>& reshape) {
  core::ModelTensor tensor;
  tensor.name = name;
  tensor.type = type;
  tensor.dims.Assign(dims);
  tensor.has_reshape = reshape.has_value();
  tensor.model_dims.Assign(reshape ? *reshape : dims);
  return tensor;
}

base::Result<core::ModelOptions> Compile(const repository::ModelSource& source, int64_t version,
                                         const config::ModelConfig& config, bool has_cache) {
  NEREID_ASSIGN_OR_RETURN(const config::Labels labels,
                          config::Labels::Load(config, source.model_folder));
  core::ModelOptions options;
  options.name = source.name;
  options.id_text = source.id().Text();
  options.version = version;
  options.config = std::make_shared<const config::ModelConfig>(config);
  options.max_batch_size = config.max_batch_size;
  options.is_decoupled = config.is_decoupled();
  // Making the first digest of a process takes as long as loading dozens of models.
  if (has_cache) {
    options.fingerprint = schedule::ModelFingerprint(source.timestamp.Latest(), config);
  }
  NEREID_ASSIGN_OR_RETURN(options.caller_limits, CallerLimitsOf(config));
  NEREID_RETURN_IF_ERROR(TrafficRulesOf(config).status());
  for (const config::ModelInput& input : config.input) {
    core::ModelTensor tensor =
        CompileTensor(input.name, input.data_type, input.dims, input.reshape);
    tensor.is_optional = input.optional;
    tensor.is_shape_tensor = input.is_shape_tensor;
    tensor.allow_ragged_batch = input.allow_ragged_batch;
    options.inputs.push_back(std::move(tensor));
  }
  for (const config::ModelOutput& output : config.output) {
    core::ModelTensor tensor =
        CompileTensor(output.name, output.data_type, output.dims, output.reshape);
    tensor.is_shape_tensor = output.is_shape_tensor;
    tensor.labels = labels.Of(output.name);
    options.outputs.push_back(std::move(tensor));
  }
  return options;
}

// Returns the states of the model; null if it has no sequences.
base::Result<std::shared_ptr<const core::StatePlan>> PlanStates(
    const repository::ModelSource& source, const config::ModelConfig& config) {
  const config::SequenceBatching* const batching = config.sequence_batching();
  if (batching == nullptr) return std::shared_ptr<const core::StatePlan>();
  NEREID_ASSIGN_OR_RETURN(const core::StatePlan::Files files,
                          config::ReadInitialStates(config, source.model_folder));
  return core::StatePlan::Compile(*batching, config.max_batch_size, files);
}

// Reads a number from the environment; 0 if it is not set. Tests of schedulers use it to hold
// requests back.
size_t HoldCount(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return 0;
  const int count = std::atoi(text);
  NEREID_LOG(kInfo, "Delaying scheduler until {} queued requests ({})", count, variable);
  return count > 0 ? static_cast<size_t>(count) : 0;
}

}  // namespace

// A version that a backend executes.
class ModelLoader::BackendVersion final : public ServableModel {
 public:
  BackendVersion(const ModelLoader& loader, std::unique_ptr<backend_host::BackendModel> made,
                 CheckWanted check)
      : backend(std::move(made)),
        check_wanted(std::make_shared<CheckWanted>(std::move(check))),
        loader_(loader) {}
  // The instances, which the scheduler owns, are destroyed first, then the backend's model. Model
  // tables may keep the core::Model without a scheduler.
  ~BackendVersion() override {
    if (model_ != nullptr) model_->SetScheduler(nullptr);
  }

  bool can_change_instances() const override { return instances != nullptr; }
  base::Result<std::shared_ptr<const config::ModelConfig>> ChangeInstances(
      const repository::ModelSource& source, CheckWanted check) override;

  void SetModel(core::ModelOptions options) {
    model_ = std::make_shared<core::Model>(std::move(options));
  }
  void SetLoadDuration(std::chrono::nanoseconds duration) { load_duration_ = duration; }

  const std::unique_ptr<backend_host::BackendModel> backend;  // outlives the model's instances
  schedule::InstanceHost* instances = nullptr;                // part of the model's scheduler
  // Whether the current load or change is still wanted; used by warm-ups.
  const std::shared_ptr<CheckWanted> check_wanted;

 private:
  const ModelLoader& loader_;
};

class ModelLoader::EnsembleVersion final : public ServableModel {
 public:
  explicit EnsembleVersion(core::ModelOptions options) {
    model_ = std::make_shared<core::Model>(std::move(options));
  }
  ~EnsembleVersion() override { model_->SetScheduler(nullptr); }

  bool can_change_instances() const override { return false; }
  base::Result<std::shared_ptr<const config::ModelConfig>> ChangeInstances(
      const repository::ModelSource& /*source*/, CheckWanted /*check*/) override {
    return base::UnsupportedError("an ensemble has no instances");
  }
};

base::Result<std::unique_ptr<core::Scheduler>> ModelLoader::MakeScheduler(
    const repository::ModelSource& source, BackendVersion& loaded) const {
  NEREID_ASSIGN_OR_RETURN(std::shared_ptr<const core::StatePlan> states,
                          PlanStates(source, loaded.backend->config()));
  NEREID_ASSIGN_OR_RETURN(std::shared_ptr<const WarmUp> warm_up,
                          WarmUp::Prepare(*loaded.model(), states, source.model_folder));
  schedule::InstancePoolOptions pool;
  pool.inline_budget = options_.inline_budget;
  pool.starts_in_parallel = loaded.backend->loads_instances_in_parallel();
  pool.warm_up = [warm_up, check = loaded.check_wanted](core::Instance& instance) {
    return warm_up->Run(instance, *check);
  };
  return states != nullptr ? MakeSequenceScheduler(loaded, std::move(states), std::move(pool))
                           : MakeBatchScheduler(loaded, std::move(pool));
}

schedule::NewInstance ModelLoader::Adopt(backend_host::BackendModel::MadeInstance made) const {
  schedule::NewInstance adopted{.instance = std::move(made.instance)};
  if (options_.limits_rate) {
    adopted.claim = {.needs = made.needs.resources, .device = made.needs.device_id, .on_grant = {}};
  }
  return adopted;
}

std::vector<schedule::NewInstance> ModelLoader::TakeInstances(BackendVersion& loaded) const {
  std::vector<schedule::NewInstance> instances;
  for (auto& made : loaded.backend->TakeInstances()) instances.push_back(Adopt(std::move(made)));
  return instances;
}

base::Result<std::unique_ptr<core::Scheduler>> ModelLoader::MakeBatchScheduler(
    BackendVersion& loaded, schedule::InstancePoolOptions pool) const {
  const config::ModelConfig& config = loaded.backend->config();
  schedule::BatchSchedulerOptions options{.policy = schedule::BatchPolicy::FromConfig(config),
                                          .pool = std::move(pool)};
  NEREID_ASSIGN_OR_RETURN(options.adapts_concurrency,
                          AdaptsConcurrency(config, options_.adapts_concurrency));
  if (config.dynamic_batching() != nullptr) {
    options.policy.hold_until_waiting = HoldCount("TRITONSERVER_DELAY_SCHEDULER");
  }
  NEREID_ASSIGN_OR_RETURN(options.strategy,
                          backend_host::PluginBatchStrategy::Find(*loaded.backend));
  NEREID_ASSIGN_OR_RETURN(
      auto scheduler, schedule::BatchScheduler::Create(*loaded.model(), context_,
                                                       std::move(options), TakeInstances(loaded)));
  loaded.instances = scheduler.get();
  return std::unique_ptr<core::Scheduler>(std::move(scheduler));
}

base::Result<std::unique_ptr<core::Scheduler>> ModelLoader::MakeSequenceScheduler(
    BackendVersion& loaded, std::shared_ptr<const core::StatePlan> states,
    schedule::InstancePoolOptions pool) const {
  schedule::SequenceSchedulerOptions options{.states = std::move(states), .pool = std::move(pool)};
  options.hold_until_waiting = HoldCount("TRITONSERVER_DELAY_SCHEDULER");
  options.hold_until_backlog = HoldCount("TRITONSERVER_BACKLOG_DELAY_SCHEDULER");
  NEREID_ASSIGN_OR_RETURN(
      auto scheduler, schedule::SequenceScheduler::Create(
                          *loaded.model(), context_, std::move(options), TakeInstances(loaded)));
  loaded.instances = scheduler.get();
  return std::unique_ptr<core::Scheduler>(std::move(scheduler));
}

std::unique_ptr<core::Scheduler> ModelLoader::AddCache(
    const core::Model& model, std::unique_ptr<core::Scheduler> scheduler) const {
  auto caching = schedule::ResponseCaching::ForModel(model, response_cache_);
  if (caching == nullptr) return scheduler;
  const config::DynamicBatching* const batching = model.config().dynamic_batching();
  return std::make_unique<schedule::CachingScheduler>(
      std::move(scheduler), std::move(caching), batching != nullptr && batching->preserve_ordering);
}

void ModelLoader::Observe(core::Model& model) const {
  const core::ObserveOptions wanted =
      ObserveOptionsFor(model.config(), options_.metrics, response_cache_ != nullptr);
  if (!wanted.quantiles.empty() || wanted.first_response_bounds_ms) {
    model.statistics().Observe(wanted);
  }
}

base::Result<std::unique_ptr<ServableModel>> ModelLoader::Load(
    const repository::ModelSource& source, int64_t version, CheckWanted check_wanted) const {
  const uint64_t start_ns = base::NowNs();
  backend_host::BackendModelOptions options;
  options.name = source.name;
  options.version = version;
  options.model_dir = source.model_folder;
  options.config = *source.config;
  options.is_config_provided = source.config_provided;
  options.config_file = source.config_path;
  auto made = backend_host::BackendModel::Load(std::move(options), libraries_);
  if (!made.ok()) return HideFolder(made.status(), source);
  auto loaded = std::make_unique<BackendVersion>(*this, *std::move(made), check_wanted);
  backend_host::BackendModel& backend = *loaded->backend;
  NEREID_ASSIGN_OR_RETURN(core::ModelOptions compiled,
                          Compile(source, version, backend.config(), response_cache_ != nullptr));
  compiled.holds_resources = options_.limits_rate && backend.config().needs_resources();
  loaded->SetModel(std::move(compiled));
  core::Model& model = *loaded->model();
  Observe(model);
  NEREID_RETURN_IF_ERROR(HideFolder(backend.CreateInstances(model, check_wanted), source));
  NEREID_ASSIGN_OR_RETURN(auto scheduler, MakeScheduler(source, *loaded));
  *loaded->check_wanted = base::OkStatus;
  LogResources();
  model.SetScheduler(AddCache(model, std::move(scheduler)));
  if (backend.can_check_ready()) {
    model.SetReadyCheck([&backend] { return backend.CheckReady(); });
  }
  if (backend.library().stands_changes()) model.SetStandsChanges();
  model.SetGpus(libraries_.options().gpus);
  // What is cached must be in host memory.
  const bool is_cached = response_cache_ != nullptr && backend.config().caches_responses();
  if (backend.uses_gpu_memory() && !is_cached) model.SetUsesGpuMemory();
  if (backend.lends_input_memory()) {
    model.SetInputMemory([&backend](size_t size) { return backend.LendInputMemory(size); });
  }
  loaded->SetLoadDuration(base::nanoseconds(static_cast<int64_t>(base::NowNs() - start_ns)));
  return std::unique_ptr<ServableModel>(std::move(loaded));
}

base::Result<std::shared_ptr<const config::ModelConfig>>
ModelLoader::BackendVersion::ChangeInstances(const repository::ModelSource& source,
                                             CheckWanted check) {
  NEREID_ASSIGN_OR_RETURN(backend_host::BackendModel::InstanceUpdate update,
                          backend->PrepareUpdate(source.config->instance_group, check));
  schedule::InstanceChange change{.added = {}, .removed = update.removed};
  for (auto& made : update.added) change.added.push_back(loader_.Adopt(std::move(made)));
  NEREID_LOG(kInfo, "changing instances of '{}' version {}: {} more, {} fewer", source.id().Text(),
             model_->version(), change.added.size() + update.added_passive.size(),
             change.removed.size() + update.removed_passive.size());
  *check_wanted = std::move(check);
  base::Status status = instances->ChangeInstances(std::move(change));
  *check_wanted = base::OkStatus;
  NEREID_RETURN_IF_ERROR(status);
  std::shared_ptr<const config::ModelConfig> config = update.config;
  backend->CommitUpdate(std::move(update));
  loader_.LogResources();
  return config;
}

// Log texts follow Triton's core/src/rate_limiter.cc, because tests search for them.
void ModelLoader::LogResources() const {
  if (!options_.limits_rate || !base::VerboseEnabled(1)) return;
  NEREID_VLOG(1, "Max Resource Map===>{}", context_.rate_limiter.Describe());
}

base::Result<std::unique_ptr<ServableModel>> ModelLoader::LoadEnsemble(
    const repository::ModelSource& source, int64_t version,
    const std::vector<std::shared_ptr<core::Model>>& models) const {
  config::ModelConfig config = *source.config;
  NEREID_RETURN_IF_ERROR(config::ValidateTensors(config, source.config_path));
  std::vector<schedule::StepModel> step_models;
  bool holds_resources = false;
  std::set<std::string> all_parts;
  for (const auto& model : models) {
    step_models.push_back({.is_decoupled = model->is_decoupled(),
                           .holds_resources = model->holds_resources(),
                           .parts = model->parts()});
    holds_resources |= model->holds_resources();
    all_parts.insert(model->id_text());
    all_parts.insert(model->parts().begin(), model->parts().end());
  }
  NEREID_ASSIGN_OR_RETURN(schedule::EnsemblePlan plan,
                          schedule::EnsemblePlan::Compile(config, step_models));
  config.decoupled = plan.is_decoupled();
  if (config.is_decoupled() && config.caches_responses()) {
    return base::InvalidArgumentError("Response Cache does not currently support model " +
                                      config.name +
                                      " with 'decoupled' transaction policy. Please disable the "
                                      "response cache.");
  }
  NEREID_ASSIGN_OR_RETURN(core::ModelOptions compiled,
                          Compile(source, version, config, response_cache_ != nullptr));
  compiled.parts.assign(all_parts.begin(), all_parts.end());
  compiled.holds_resources = holds_resources;
  // An output without labels of its own has those of the model that produces it.
  for (core::ModelTensor& output : compiled.outputs) {
    for (size_t i = 0; i < models.size() && output.labels.empty(); ++i) {
      for (const schedule::EnsembleBinding& made : plan.steps()[i].outputs) {
        const int index = models[i]->FindOutput(made.name);
        if (plan.tensors()[made.tensor].name != output.name || index < 0) continue;
        output.labels = models[i]->outputs()[static_cast<size_t>(index)].labels;
      }
    }
  }
  // The responses of an ensemble depend on its models.
  if (response_cache_ != nullptr) {
    for (const auto& model : models) compiled.fingerprint += "," + model->fingerprint();
  }
  auto loaded = std::make_unique<EnsembleVersion>(std::move(compiled));
  core::Model& model = *loaded->model();
  model.SetGpus(libraries_.options().gpus);
  Observe(model);
  model.SetScheduler(
      AddCache(model, std::make_unique<schedule::EnsembleScheduler>(
                          model, std::move(plan), submitter_, producer_waits_, context_.timers)));
  return std::unique_ptr<ServableModel>(std::move(loaded));
}

}  // namespace nereid::engine
