// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "base/buffer_budget.h"
#include "base/log.h"
#include "base/temporary_folder.h"
#include "core/execution_mark.h"
#include "engine/load_limits.h"
#include "engine/metrics.h"
#include "engine/startup_log.h"

namespace nereid::engine {
namespace {

// Lists only extensions that are really served, in Triton's order.
service::ServerMetadata MakeMetadata(const EngineOptions& options) {
  return {options.server_id,
          options.version,
          {"classification", "sequence", "model_repository", "model_repository(unload_dependents)",
           "schedule_policy", "model_configuration", "system_shared_memory", "cuda_shared_memory",
           "binary_tensor_data", "parameters", "statistics", "trace", "logging"}};
}

memory::GpuOptions GpusFor(const EngineOptions& options) {
  memory::GpuOptions gpus = options.gpus;
  gpus.min_compute_capability = options.backends.min_compute_capability;
  return gpus;
}

backend_host::BackendLibrariesOptions BackendsFor(const EngineOptions& options, memory::Gpus& gpus,
                                                  base::Watchdog& watchdog) {
  backend_host::BackendLibrariesOptions backends = options.backends;
  backends.gpus = &gpus;
  backends.watchdog = &watchdog;
  backends.execution_limit = options.execution_limit;
  return backends;
}

ModelControlOptions ControlFor(const EngineOptions& options) {
  ModelControlOptions control = options.control;
  // OnDemandModels loads them, to measure what they take.
  if (control.mode == ControlMode::kOnDemand) control.startup_models.clear();
  return control;
}

// Returns nothing in other control modes.
std::optional<OnDemandOptions> OnDemandFor(const EngineOptions& options,
                                           const core::Budgets& budgets) {
  if (options.control.mode != ControlMode::kOnDemand) return std::nullopt;
  OnDemandOptions on_demand = options.on_demand;
  on_demand.most_waiting = budgets.limits.requests;
  return on_demand;
}

template <typename Tensors>
std::vector<service::TensorMetadata> DescribeTensors(const Tensors& tensors, bool is_batching) {
  std::vector<service::TensorMetadata> described;
  for (const auto& tensor : tensors) {
    service::TensorMetadata& entry = described.emplace_back();
    entry.name = tensor.name;
    entry.type = tensor.type;
    if (is_batching) entry.shape.PushBack(tensor::kWildcard);
    for (const int64_t dim : tensor.dims.dims()) entry.shape.PushBack(dim);
  }
  return described;
}

core::BudgetLimits ChooseBudgets(const core::BudgetLimits& asked) {
  core::ChosenLimits chosen = core::ChooseLimits(asked, base::ReadSystemLimits());
  for (const std::string& warning : chosen.warnings) NEREID_LOG(kWarning, "{}", warning);
  base::LimitBufferPool(chosen.pool_bytes);
  return chosen.limits;
}

// The time for tearing down models after the deadline has passed while requests were still running.
constexpr std::chrono::milliseconds kTeardownGrace{500};
// The time for the watcher to notice that it is to end, even if requests used all the available
// time.
constexpr std::chrono::milliseconds kWatcherGrace{1500};

// Threads in this pool wait for models rather than use the processor.
constexpr size_t kBlockingThreads = 256;
// Loads that generation files ask for at the same time; clients' requests do not wait for them.
constexpr size_t kWishThreads = 64;

}  // namespace

Engine::Engine(EngineOptions options, std::vector<repository::StoreKind> stores,
               TRITONSERVER_Server& server)
    : options_(std::move(options)),
      budgets_(ChooseBudgets(options_.budgets)),
      metadata_(MakeMetadata(options_)),
      watchdog_(options_.watchdog_limit, core::DescribeExecutionsOf),
      gpus_(GpusFor(options_)),
      health_(watchdog_, gpus_),
      regions_(options_.allows_client_regions, options_.trusts_client_regions, &gpus_),
      tracing_(options_.trace),
      metrics_(options_.metrics, gpus_),
      timers_(&watchdog_),
      rate_limiter_(options_.rate_limits, timers_),
      libraries_(BackendsFor(options_, gpus_, watchdog_), server),
      agents_(options_.agent_directory),
      loader_({.timers = timers_,
               .reaper = reaper_,
               .rate_limiter = rate_limiter_,
               .watchdog = &watchdog_},
              *this, libraries_,
              {.inline_budget = options_.inline_budget,
               .limits_rate = options_.limits_rate,
               .adapts_concurrency = options_.adapts_concurrency,
               .metrics = options_.metrics}),
      life_cycle_(loader_, {.load_threads = options_.model_load_threads,
                            .load_retries = options_.model_load_retries,
                            .has_namespaces = options_.repository.has_namespaces,
                            .repeats_loads = options_.control.mode == ControlMode::kPoll}),
      readiness_(life_cycle_, health_),
      director_(life_cycle_, *this, budgets_.limits.requests_per_model),
      store_(std::move(stores)),
      scanner_(store_, agents_, options_.repository),
      control_(scanner_, life_cycle_, ControlFor(options_)),
      on_demand_(scanner_, control_, life_cycle_, timers_, OnDemandFor(options_, budgets_)),
      watcher_(store_, IntervalsOfWatch(), ActionsOfWatch()),
      wish_pool_("wish", kWishThreads),
      blocking_pool_("control", kBlockingThreads) {
  // Folders that killed servers left behind may be large, so their removal runs in the background.
  blocking_pool_.Post([] {
    const size_t removed = base::RemoveAbandonedFolders();
    if (removed > 0)
      NEREID_LOG(kInfo, "removed {} temporary folders of servers that are gone", removed);
  });
}

Engine::~Engine() {
  if (!is_stopped_.load()) Stop(std::chrono::steady_clock::now());
}

// Error texts follow Triton's core/src/server.cc, InferenceServer::Init.
base::Status Engine::OpenCache() {
  const CacheOptions& options = options_.cache;
  if (!options.is_used()) return base::OkStatus();
  if (options.settings.size() + options.json.size() > 1) {
    return base::InvalidArgumentError(
        "found multiple cache configurations, but only a single cache is currently supported");
  }
  cache_host::CacheLibraryOptions library{.directory = options.directory};
  if (options.json.empty()) {
    std::tie(library.name, library.settings) = *options.settings.begin();
  } else {
    std::tie(library.name, library.json) = *options.json.begin();
  }
  NEREID_ASSIGN_OR_RETURN(cache_, cache_host::CacheLibrary::Load(std::move(library)));
  loader_.SetResponseCache(cache_.get());
  return base::OkStatus();
}

base::Status Engine::Start() {
  base::Status status = scanner_.CheckRepositories();
  if (status.ok()) status = OpenCache();
  if (!status.ok()) {
    if (options_.exit_on_error) return status;
    // A server that failed to start keeps running so that its health checks report it.
    NEREID_LOG(kError, "{}", status.ToString());
    has_failed_.store(true);
    return base::OkStatus();
  }
  watcher_.Begin();
  status = control_.Start();
  if (options_.control.mode == ControlMode::kExplicit) watcher_.FulfilFirst();
  if (status.ok() && on_demand_.are_used()) status = StartOnDemand();
  LogBackends(libraries_.Loaded());
  LogModels(control_.Index(false));
  is_started_.store(true);  // requests find models from now on
  if (!status.ok()) {
    if (options_.exit_on_error) return status;
    NEREID_LOG(kError, "{}", status.ToString());
  }
  watcher_.Start();
  return base::OkStatus();
}

base::Status Engine::StartOnDemand() {
  if (options_.repository.has_namespaces) {
    return base::InvalidArgumentError(
        "models cannot be loaded on demand with namespaces: a request could mean several");
  }
  std::set<std::string> names = options_.control.startup_models;
  names.insert(options_.on_demand.pinned.begin(), options_.on_demand.pinned.end());
  return on_demand_.Start(names);
}

WatchIntervals Engine::IntervalsOfWatch() const {
  if (options_.control.mode == ControlMode::kNone) return {};
  const bool polls = options_.control.mode != ControlMode::kExplicit;
  return {.polls = polls ? options_.poll_interval : std::chrono::seconds(0),
          .looks = options_.generation_interval};
}

RepositoryWatcher::Actions Engine::ActionsOfWatch() {
  RepositoryWatcher::Actions actions;
  actions.repositories = [this] {
    std::vector<std::string> paths = scanner_.repositories();
    if (!options_.looks_into_object_stores) {
      std::erase_if(paths, [this](const std::string& path) { return !store_.IsLocal(path); });
    }
    return paths;
  };
  actions.keep_out = [this](std::set<std::string> names) { scanner_.KeepOut(std::move(names)); };
  if (options_.control.mode != ControlMode::kExplicit) {
    actions.poll = [this] { static_cast<void>(PollNow()); };
  }
  if (options_.control.mode != ControlMode::kPoll) {
    actions.wishes.fulfil = [this](const std::string& model, bool is_loaded) {
      return Fulfil(model, is_loaded);
    };
    actions.wishes.cancel_load = [this](const std::string& model) {
      life_cycle_.CancelLoads(model);
    };
    actions.wishes.run = [this](base::UniqueFunction<void()> work) {
      wish_pool_.Post(std::move(work));
    };
  }
  return actions;
}

base::Status Engine::Fulfil(const std::string& model, bool is_loaded) {
  if (is_draining_.load()) return base::UnavailableError("Server not ready");
  if (on_demand_.are_used()) {
    return is_loaded ? on_demand_.Load(model, {}) : on_demand_.Unload(model, false);
  }
  return is_loaded ? control_.Load(model, {}) : control_.Unload(model, false);
}

base::Status Engine::PollNow() {
  if (on_demand_.are_used()) {
    on_demand_.Refresh();
    return base::OkStatus();
  }
  if (options_.control.mode != ControlMode::kPoll) {
    return base::UnavailableError("polling is disabled");
  }
  base::MutexLock lock(polling_);
  if (is_started_.load() && !is_draining_.load()) control_.Poll();
  return base::OkStatus();
}

base::Status Engine::RegisterRepository(const std::string& path,
                                        const repository::NameMapping& names) {
  if (options_.control.mode != ControlMode::kExplicit) {
    return base::UnsupportedError(
        "repository registration is not allowed if model control mode is not EXPLICIT");
  }
  NEREID_RETURN_IF_ERROR(scanner_.Register(path, names));
  NEREID_LOG(kInfo, "Model repository registered: {}", path);
  return base::OkStatus();
}

base::Status Engine::UnregisterRepository(const std::string& path) {
  if (options_.control.mode != ControlMode::kExplicit) {
    return base::UnsupportedError(
        "repository unregistration is not allowed if model control mode is not EXPLICIT");
  }
  NEREID_RETURN_IF_ERROR(scanner_.Unregister(path));
  NEREID_LOG(kInfo, "Model repository unregistered: {}", path);
  return base::OkStatus();
}

void Engine::FinishSequences(base::TimePoint deadline) {
  // The models are pinned because polling may still replace and unload them.
  std::vector<core::ModelHandle> models;
  for (const LifeCycle::Loaded& loaded : life_cycle_.LoadedModels()) {
    if (!loaded.model->TryPin()) continue;
    models.emplace_back(*loaded.model);
    loaded.model->scheduler().RefuseStarts();
  }
  for (core::ModelHandle& model : models) {
    if (!model->scheduler().WaitForSequences(deadline)) {
      NEREID_LOG(kWarning, "sequences of model '{}' (version {}) have not ended in time",
                 model->name(), model->version());
    }
    model.Reset();
  }
}

// Log texts follow Triton's core/src/server.cc, InferenceServer::Stop.
void Engine::LogInFlight(int64_t seconds_left) const {
  std::vector<std::pair<std::shared_ptr<core::Model>, uint64_t>> busy;
  for (const auto& [id, model, load_seconds] : life_cycle_.LoadedModels()) {
    // A sequence between two of its requests counts as well.
    const uint64_t count = std::max(model->pin_count(), model->scheduler().SequenceCount());
    if (count > 0) busy.emplace_back(model, count);
  }
  if (busy.empty()) return;
  NEREID_LOG(kInfo, "Timeout {}: Found {} model versions that have in-flight inferences",
             seconds_left, busy.size());
  for (const auto& [model, count] : busy) {
    NEREID_LOG(kInfo, "Model '{}' (version {}) has {} in-flight inferences", model->name(),
               model->version(), count);
  }
}

Unfinished Engine::Stop(base::TimePoint deadline) {
  StartDraining();
  is_stopped_.store(true);
  life_cycle_.CancelAllLoads();
  // Told early, so that it is over when it is waited for: a look at a bucket takes a second to end.
  static_cast<void>(watcher_.Stop(std::chrono::steady_clock::now()));
  bool is_over = on_demand_.Stop(deadline);
  is_over &= control_.Stop(deadline);
  is_over &= watcher_.Stop(std::max(deadline, std::chrono::steady_clock::now() + kWatcherGrace));
  // Repository operations end before their connections are closed, so that their clients get a
  // response.
  is_over &= wish_pool_.WaitUntilIdle(deadline);
  is_over &= blocking_pool_.WaitUntilIdle(deadline);
  // Even if requests used all the available time, idle models are torn down in order.
  const base::TimePoint end = std::max(deadline, std::chrono::steady_clock::now() + kTeardownGrace);
  Unfinished left = life_cycle_.UnloadAll(end);
  is_over &= director_.WaitUntilIdle(end);
  if (!is_over && left.empty()) {
    left.work.emplace_back("An operation on the model repository is in progress");
  }
  return left;
}

bool Engine::IsLive() const {
  return !is_stopped_.load() && !has_failed_.load() && health_.IsLive();
}

bool Engine::IsReady() const {
  return is_started_.load() && IsLive() && !is_draining_.load() &&
         (!NeedsModels() || readiness_.AreModelsReady());
}

bool Engine::NeedsModels() const { return options_.strict_readiness && !on_demand_.are_used(); }

bool Engine::ReadinessMayBlock() const { return readiness_.MayBlock(); }

base::Result<core::ModelHandle> Engine::FindModel(std::string_view name, std::string_view version) {
  if (!is_started_.load()) [[unlikely]] {
    return base::UnavailableError("Server not ready");
  }
  return life_cycle_.Find(name, version);
}

base::Result<service::TrafficState> Engine::ReadTraffic(std::string_view name) {
  if (!is_started_.load()) return base::UnavailableError("Server not ready");
  const ModelTable& table = life_cycle_.Table();
  NEREID_ASSIGN_OR_RETURN(const ModelId id, table.FindId(name));
  const std::shared_ptr<const Traffic> traffic = table.TrafficOf(id.Text());
  return traffic == nullptr ? service::TrafficState() : traffic->Read();
}

base::Status Engine::ChangeTraffic(std::string_view name, const service::TrafficChange& change) {
  if (!is_started_.load() || is_draining_.load()) return base::UnavailableError("Server not ready");
  const auto begin_epoch = [this] {
    std::random_device random;
    if (cache_ != nullptr) cache_->BeginEpoch(uint64_t{random()} << 32 | random());
  };
  // Steps of ensembles find other versions at some moment in between: no epoch may have responses
  // of both kinds and stay, and that before has to be free of the new kind, because other servers
  // may be in it.
  begin_epoch();
  NEREID_RETURN_IF_ERROR(life_cycle_.ChangeTraffic(name, change));
  begin_epoch();
  return base::OkStatus();
}

bool Engine::IsAbsent(std::string_view name) {
  return LoadsOnDemand(name) && !life_cycle_.FindAny(name);
}

bool Engine::LoadsOnDemand(std::string_view name) {
  return is_started_.load() && on_demand_.Has(name);
}

void Engine::AwaitModel(std::string_view name, std::string_view version, ModelWaiter done) {
  if (!LoadsOnDemand(name)) return done(FindModel(name, version));
  on_demand_.Await(name, version, std::move(done));
}

base::Result<core::ModelHandle> Engine::WaitForModel(std::string_view name,
                                                     std::string_view version) {
  base::Result<core::ModelHandle> model = FindModel(name, version);
  if (model.ok() || !LoadsOnDemand(name)) return model;
  return on_demand_.Wait(name, version);
}

base::Result<bool> Engine::IsModelReady(std::string_view name, std::string_view version) {
  const base::Result<core::ModelHandle> model = FindModel(name, version);
  if (model.ok()) return readiness_.IsReady(**model);
  if (IsAbsent(name)) return on_demand_.IsServable(name);
  // A known model that is not ready is a valid result; any other error is returned.
  if (model.status().code() == base::StatusCode::kUnavailable) return false;
  return model.status();
}

service::HealthChecks Engine::CheckLiveness() const {
  service::HealthCheck start{.name = "start"};
  if (has_failed_.load()) start.problems.emplace_back("the server failed to start");
  if (is_stopped_.load()) start.problems.emplace_back("the server is stopping");
  service::HealthChecks checks = {std::move(start)};
  health_.AddChecks(checks);
  return checks;
}

service::HealthChecks Engine::CheckReadiness() const {
  service::HealthChecks checks = CheckLiveness();
  service::HealthCheck serving{.name = "serving"};
  if (!is_started_.load()) serving.problems.emplace_back("models of the start are being loaded");
  if (is_draining_.load()) serving.problems.emplace_back("the server is draining");
  checks.push_back(std::move(serving));
  // Without strict readiness, models do not matter.
  if (NeedsModels() && is_started_.load()) checks.push_back(readiness_.CheckModels());
  return checks;
}

base::Result<service::HealthChecks> Engine::CheckModel(std::string_view name,
                                                       std::string_view version) {
  service::HealthCheck state{.name = "state"};
  service::HealthCheck instances{.name = "instances"};
  service::HealthCheck backend{.name = "backend"};
  const base::Result<core::ModelHandle> model = FindModel(name, version);
  if (model.ok()) {
    readiness_.CheckModel(**model, instances, backend);
  } else if (IsAbsent(name)) {
    if (!on_demand_.IsServable(name)) state.problems.emplace_back("its last load failed");
  } else if (model.status().code() == base::StatusCode::kUnavailable) {
    state.problems.emplace_back(model.status().message());
  } else {
    return model.status();
  }
  return service::HealthChecks{std::move(state), std::move(instances), std::move(backend)};
}

base::Result<service::ModelMetadata> Engine::DescribeModel(std::string_view name,
                                                           std::string_view version) {
  NEREID_ASSIGN_OR_RETURN(const core::ModelHandle model, FindModel(name, version));
  service::ModelMetadata metadata;
  metadata.name = model->name();
  if (!version.empty()) {
    metadata.versions.push_back(model->version_text());
  } else {
    for (const int64_t ready : life_cycle_.Table().ReadyVersions(name)) {
      metadata.versions.push_back(std::to_string(ready));
    }
  }
  const config::ModelConfig& config = model->config();
  if (const auto traffic = life_cycle_.Table().TrafficOf(model->id_text())) {
    metadata.labels = traffic->rules().labels;
  }
  metadata.platform = config.platform.empty() ? config.backend : config.platform;
  metadata.inputs = DescribeTensors(model->inputs(), model->max_batch_size() > 0);
  metadata.outputs = DescribeTensors(model->outputs(), model->max_batch_size() > 0);
  return metadata;
}

base::Result<std::shared_ptr<const config::ModelConfig>> Engine::GetModelConfig(
    std::string_view name, std::string_view version) {
  NEREID_ASSIGN_OR_RETURN(const core::ModelHandle model, FindModel(name, version));
  return life_cycle_.ConfigOf(*model);
}

std::vector<service::IndexEntry> Engine::RepositoryIndex(bool only_ready) {
  std::vector<service::IndexEntry> index = control_.Index(only_ready);
  on_demand_.Explain(index);
  return index;
}

base::Status Engine::LoadModel(std::string_view name, const service::LoadOptions& options) {
  base::BudgetGrant grant;
  NEREID_RETURN_IF_ERROR(TakeLoad(name, options, budgets_, grant));
  return LoadTrusted(name, options);
}

base::Status Engine::LoadTrusted(std::string_view name, const service::LoadOptions& options) {
  if (!is_started_.load() || is_draining_.load()) return base::UnavailableError("Server not ready");
  if (on_demand_.are_used()) return on_demand_.Load(name, options);
  return control_.Load(std::string(name), options);
}

base::Status Engine::UnloadModel(std::string_view name, bool unload_dependents) {
  if (!is_started_.load() || is_draining_.load()) return base::UnavailableError("Server not ready");
  if (on_demand_.are_used()) return on_demand_.Unload(name, unload_dependents);
  return control_.Unload(std::string(name), unload_dependents);
}

void Engine::RunBlocking(base::UniqueFunction<void()> work) {
  blocking_pool_.Post(std::move(work));
}

base::Result<std::vector<service::ModelStatistics>> Engine::ReadStatistics(
    std::string_view name, std::string_view version) {
  std::string number(version);
  if (!version.empty()) {
    NEREID_ASSIGN_OR_RETURN(number, life_cycle_.Table().NumberOf(name, version));
  }
  std::vector<service::ModelStatistics> list;
  bool found_name = name.empty();
  for (const auto& [id, model, load_seconds] : life_cycle_.LoadedModels()) {
    if (!name.empty() && model->name() != name) continue;
    found_name = true;
    if (!version.empty() && model->version_text() != number) continue;
    list.push_back({model->name(), model->version_text(), model->statistics().Read()});
  }
  // Error texts follow Triton's core/src/tritonserver.cc, ServerModelStatistics.
  if (!found_name && LoadsOnDemand(name)) return list;
  if (!found_name) {
    return base::InvalidArgumentError(fmt::format("requested model '{}' is not available", name));
  }
  if (list.empty() && !version.empty()) {
    return base::InvalidArgumentError(
        fmt::format("requested model version is not available for model '{}'", name));
  }
  return list;
}

std::vector<service::ModelLoad> Engine::ReadLoads() {
  std::vector<service::ModelLoad> loads;
  for (const std::shared_ptr<core::Model>& model : life_cycle_.Models()) {
    const std::optional<core::LoadCounts> counts = model->statistics().ReadLoad();
    if (counts) loads.push_back({model.get(), *counts});
  }
  return loads;
}

std::string Engine::MetricsText() {
  return metrics_.Page({.models = life_cycle_.LoadedModels(),
                        .table = life_cycle_.Table(),
                        .health = health_,
                        .budgets = budgets_,
                        .has_cache = cache_ != nullptr,
                        .is_live = IsLive(),
                        .is_serving = is_started_.load() && !is_draining_.load(),
                        .needs_models = NeedsModels(),
                        .on_demand = on_demand_.Counts()});
}

}  // namespace nereid::engine
