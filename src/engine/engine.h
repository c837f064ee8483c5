// SPDX-License-Identifier: Apache-2.0
// The server without its frontends: finds and loads models, validates requests and passes them to
// their schedulers, and reports its state.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "base/thread_reaper.h"
#include "base/timers.h"
#include "base/watchdog.h"
#include "cache_host/cache_library.h"
#include "core/budgets.h"
#include "core/submitter.h"
#include "engine/health.h"
#include "engine/life_cycle.h"
#include "engine/metrics.h"
#include "engine/model_control.h"
#include "engine/model_loader.h"
#include "engine/on_demand.h"
#include "engine/on_demand_models.h"
#include "engine/readiness.h"
#include "engine/repository_watcher.h"
#include "engine/traffic_director.h"
#include "memory/gpus.h"
#include "observe/custom_metrics.h"
#include "observe/trace.h"
#include "repoagent_host/agents.h"
#include "repository/routed_store.h"
#include "repository/scanner.h"
#include "schedule/caller_quotas.h"
#include "schedule/rate_limiter.h"
#include "service/service.h"

namespace nereid::engine {

// The settings of the response cache, of which a server has at most one.
struct CacheOptions {
  std::string directory;
  // The settings by cache name and setting name; empty: no cache.
  std::map<std::string, std::map<std::string, std::string>> settings;
  // The settings as a JSON object by cache name, if they were given in that form.
  std::map<std::string, std::string> json;

  bool is_used() const { return !settings.empty() || !json.empty(); }
};

// The version of Triton whose behaviour this server has.
inline constexpr const char* kServerVersion = "2.73.0";

// The settings of a server that are fixed before it starts, from the command line or the C API.
struct EngineOptions {
  std::string server_id = "triton";
  std::string version = kServerVersion;  // shown in the server's metadata
  repository::ScanOptions repository;
  backend_host::BackendLibrariesOptions backends;
  memory::GpuOptions gpus;  // with the compute capability of `backends`
  // The longest average execution that a reactor runs itself; 0: none.
  std::chrono::nanoseconds inline_budget = ModelLoaderOptions().inline_budget;
  CacheOptions cache;
  std::string agent_directory;        // contains a folder for each repository agent
  bool limits_rate = false;           // whether instances compete for resources
  bool adapts_concurrency = false;    // of models that do not say so themselves
  schedule::ResourceMap rate_limits;  // if limits_rate: the counts that are not derived
  ModelControlOptions control;
  OnDemandOptions on_demand;
  // In poll mode; 0: only once, at start-up. On demand, how often new models are looked for.
  std::chrono::seconds poll_interval{15};
  // How often the generation files of the repositories are looked at (repository/generation.h), in
  // all control modes but none; 0: never.
  std::chrono::milliseconds generation_interval{0};
  // Also those in object stores, where each look is a request that somebody pays for.
  bool looks_into_object_stores = false;
  unsigned model_load_threads = 4;
  unsigned model_load_retries = 0;
  bool exit_on_error = true;
  bool strict_readiness = true;
  // After how long without progress a thread counts as stuck (base/watchdog.h), and an execution;
  // 0: never.
  std::chrono::seconds watchdog_limit{0};
  std::chrono::seconds execution_limit{0};
  bool allows_client_regions = false;  // of shared memory
  bool trusts_client_regions = false;  // clients do not change a region while a model uses it
  MetricsConfig metrics;
  observe::TraceOptions trace;
  core::BudgetLimits budgets;
};

// The server. Thread-safe.
class Engine final : public service::Service, private core::Submitter {
 public:
  // `stores` are the kinds of repository stores besides local folders. `server` is returned to
  // backends that ask for their server; it outlives the engine.
  Engine(EngineOptions options, std::vector<repository::StoreKind> stores,
         TRITONSERVER_Server& server);
  // Stops without waiting if Stop was not called.
  ~Engine() override;

  // Scans the repositories and loads the models according to the control mode. Fails if a
  // repository is missing or any model failed; the other models are loaded all the same. Never
  // fails without exit_on_error: a server without its repositories is then not live.
  base::Status Start();
  // Makes the server not ready, waits until `deadline` for requests in flight, then unloads models.
  // Loads in progress are cancelled. Returns soon after `deadline` in any case. If anything is
  // left, the engine must not be destroyed, because threads still use it.
  Unfinished Stop(base::TimePoint deadline);
  // Accepts no new sequences and waits until those in progress have ended, or `deadline`.
  // Everything else continues. Without this, a client that moved to another server would lose the
  // state of its sequences.
  void FinishSequences(base::TimePoint deadline);
  // Logs which models still have requests, and that this may take `seconds_left`. Logs nothing if
  // there are none.
  void LogInFlight(int64_t seconds_left) const;
  // Makes the server not ready; everything else continues. This is the first step of a shutdown.
  void StartDraining() { is_draining_.store(true); }
  bool is_draining() const { return is_draining_.load(); }

  bool IsLive() const override;
  bool IsReady() const override;
  // Whether the server is live and all its threads and devices work, also those without which it
  // can serve some of its models.
  bool IsWell() const { return IsLive() && health_.IsWell(); }
  // Returns the error that only a new process cures; OK if there is none.
  std::optional<std::string> FatalError() const { return health_.FatalError(); }
  service::HealthChecks CheckLiveness() const override;
  service::HealthChecks CheckReadiness() const override;
  base::Result<service::HealthChecks> CheckModel(std::string_view name,
                                                 std::string_view version) override;
  // Watches over threads that serve this engine.
  base::Watchdog& watchdog() { return watchdog_; }
  bool ReadinessMayBlock() const override;
  const service::ServerMetadata& metadata() const override { return metadata_; }
  base::Result<core::ModelHandle> FindModel(std::string_view name,
                                            std::string_view version) override;
  void Direct(core::Request& request, const service::HeaderLookup& header) override {
    director_.Direct(request, header);
  }
  base::Result<service::TrafficState> ReadTraffic(std::string_view name) override;
  base::Status ChangeTraffic(std::string_view name, const service::TrafficChange& change) override;
  bool LoadsOnDemand(std::string_view name) override;
  void AwaitModel(std::string_view name, std::string_view version, ModelWaiter done) override;
  // Pins a version like FindModel, and waits for it like AwaitModel. Blocks.
  base::Result<core::ModelHandle> WaitForModel(std::string_view name, std::string_view version);
  base::Result<bool> IsModelReady(std::string_view name, std::string_view version) override;
  base::Result<service::ModelMetadata> DescribeModel(std::string_view name,
                                                     std::string_view version) override;
  base::Result<std::shared_ptr<const config::ModelConfig>> GetModelConfig(
      std::string_view name, std::string_view version) override;
  std::vector<service::IndexEntry> RepositoryIndex(bool only_ready) override;
  // Refuses what budgets do not allow a client. For the program itself there is LoadTrusted.
  base::Status LoadModel(std::string_view name, const service::LoadOptions& options) override;
  base::Status LoadTrusted(std::string_view name, const service::LoadOptions& options);
  base::Status UnloadModel(std::string_view name, bool unload_dependents) override;
  void RunBlocking(base::UniqueFunction<void()> work) override;
  base::Result<std::vector<service::ModelStatistics>> ReadStatistics(
      std::string_view name, std::string_view version) override;
  std::vector<service::ModelLoad> ReadLoads() override;
  // Returns what a loaded version was made from, or what its instances were last changed by. Null
  // once it is no longer loaded.
  std::shared_ptr<const repository::ModelSource> SourceOf(const core::Model& model) const {
    return life_cycle_.SourceOf(model);
  }
  void Infer(core::RequestPtr request) override;
  // The two halves of Infer, for callers that need to know at once if a request does not fit its
  // model: Prepare validates and normalizes the request, once, and sends no response; Schedule
  // executes it.
  base::Status Prepare(core::Request& request);
  static void Schedule(core::RequestPtr request);
  // Brings the loaded models to the state of the repositories; on demand, only looks for new ones.
  // Unavailable in other modes than these. Blocks.
  base::Status PollNow();
  // In explicit control mode, RegisterRepository adds a repository, with the names of models that
  // differ from their folders', and UnregisterRepository removes one. Neither loads or unloads
  // models.
  base::Status RegisterRepository(const std::string& path, const repository::NameMapping& names);
  base::Status UnregisterRepository(const std::string& path);
  void Cancel(core::Request& request) override;
  memory::RegionTable& regions() override { return regions_; }
  std::string MetricsText() override;
  service::LoadTotals ReadLoadTotals() override { return SumLoads(life_cycle_.Models()); }
  std::string PluginMetricsText(const std::string& family) override {
    return observe::CustomFamilyText(family);
  }
  std::vector<observe::GpuReading> ReadGpus() override { return metrics_.ReadGpus(); }
  observe::Tracing* tracing() override { return &tracing_; }
  // What clients may make the server hold; the frontends use their part of it.
  core::Budgets& budgets() { return budgets_; }

 private:
  base::Status OpenCache();
  // In the control mode "ondemand": begins to serve models, and loads those of the start.
  base::Status StartOnDemand();
  // Whether the model is loaded on demand, and is not loaded now.
  bool IsAbsent(std::string_view name);
  // Whether the server is ready only if all models that were tried are.
  bool NeedsModels() const;
  WatchIntervals IntervalsOfWatch() const;
  RepositoryWatcher::Actions ActionsOfWatch();
  // Loads or unloads a model as a generation file asks. Blocks.
  base::Status Fulfil(const std::string& model, bool is_loaded);
  // Takes what the request needs of its caller's quotas.
  base::Status AdmitCaller(core::Request& request);

  base::Result<core::ModelHandle> PinModel(std::string_view name, int64_t version) override;
  // Also for the steps of ensembles, whose callers have been admitted with the ensemble's request.
  void Submit(core::RequestPtr request) override;
  void CancelSubmitted(core::Request& request) override { Cancel(request); }

  const EngineOptions options_;
  core::Budgets budgets_;
  const service::ServerMetadata metadata_;
  base::Watchdog watchdog_;
  memory::Gpus gpus_;
  const Health health_;
  memory::RegionTable regions_;
  observe::Tracing tracing_;
  Metrics metrics_;
  base::Timers timers_;
  base::ThreadReaper reaper_;
  schedule::RateLimiter rate_limiter_;
  schedule::CallerQuotas quotas_;
  backend_host::BackendLibraries libraries_;
  repoagent_host::Agents agents_;
  std::unique_ptr<core::ResponseCache> cache_;  // null: none; set by Start
  ModelLoader loader_;
  LifeCycle life_cycle_;
  const Readiness readiness_;
  TrafficDirector director_;
  repository::RoutedStore store_;
  repository::Scanner scanner_;
  ModelControl control_;
  OnDemandModels on_demand_;
  std::atomic<bool> is_started_{false};
  std::atomic<bool> has_failed_{false};  // to start: the server is then not live
  std::atomic<bool> is_draining_{false};
  std::atomic<bool> is_stopped_{false};
  base::Mutex polling_;  // held while a poll is in progress
  RepositoryWatcher watcher_;
  // The last members, because their threads use all others.
  base::TaskPool wish_pool_;
  base::TaskPool blocking_pool_;
};

}  // namespace nereid::engine
