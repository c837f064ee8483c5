// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/core.h>

#include "base/log.h"
#include "engine/metrics.h"
#include "engine/normalize.h"
#include "s3/s3_store.h"

namespace nereid::engine {
namespace {

// Only what is really served, in Triton's order.
service::ServerMetadata MakeMetadata(const EngineOptions& options) {
  return {options.server_id,
          options.version,
          {"classification", "sequence", "schedule_policy", "model_configuration",
           "system_shared_memory", "cuda_shared_memory", "binary_tensor_data", "parameters",
           "statistics"}};
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

ModelLoaderOptions LoaderOptions(const EngineOptions& options, core::Submitter& submitter,
                                 base::Timers& timers, schedule::RateLimiter& rate_limiter) {
  ModelLoaderOptions loader = options.loader;
  loader.submitter = &submitter;
  loader.timers = &timers;
  loader.rate_limiter = options.limits_rate ? &rate_limiter : nullptr;
  return loader;
}

repository::ScanOptions ScannerOptions(const EngineOptions& options,
                                       repository::ModelAgents& agents) {
  repository::ScanOptions scan = options.repository;
  scan.agents = &agents;
  return scan;
}

}  // namespace

Engine::Engine(EngineOptions options)
    : options_(std::move(options)),
      metadata_(MakeMetadata(options_)),
      regions_(options_.allows_client_regions),
      rate_limiter_(options_.rate_limits),
      libraries_(options_.backends),
      agents_(options_.agent_directory),
      loader_(LoaderOptions(options_, *this, timers_, rate_limiter_), libraries_),
      life_cycle_(loader_, options_.model_load_threads),
      scanner_(store_, ScannerOptions(options_, agents_)) {
  store_.Add("s3://", [] { return std::make_unique<s3::S3Store>(s3::S3StoreOptions()); });
}

Engine::~Engine() {
  if (!is_stopped_.load()) Stop(std::chrono::steady_clock::now());
}

// Texts: core/src/server.cc, InferenceServer::Init.
base::Status Engine::OpenCache() {
  const auto& settings = options_.cache.settings;
  if (settings.empty()) return base::OkStatus();
  if (settings.size() > 1) {
    return base::InvalidArgumentError(
        "found multiple cache configurations, but only a single cache is currently supported");
  }
  const auto& [name, values] = *settings.begin();
  NEREID_ASSIGN_OR_RETURN(cache_, cache_host::CacheLibrary::Load(
                                      {.directory = options_.cache.directory,
                                       .name = name,
                                       .settings = values}));
  loader_.SetResponseCache(cache_.get());
  return base::OkStatus();
}

base::Status Engine::Start() {
  NEREID_RETURN_IF_ERROR(scanner_.CheckRepositories());
  NEREID_RETURN_IF_ERROR(OpenCache());
  const repository::ScanResult scan = scanner_.ScanAll();
  for (const auto& [repository, status] : scan.unreadable_repositories) {
    NEREID_LOG(kError, "failed to read model repository '{}': {}", repository, status.message());
  }
  life_cycle_.LoadAll(scan.models);
  is_started_.store(true);  // requests find models from here on
  if (options_.exit_on_error &&
      (!life_cycle_.AllReady() || !scan.unreadable_repositories.empty())) {
    return base::InternalError("failed to load all models");
  }
  return base::OkStatus();
}

size_t Engine::Stop(base::TimePoint deadline) {
  StartDraining();
  is_stopped_.store(true);
  return life_cycle_.UnloadAll(deadline);
}

bool Engine::IsLive() const { return !is_stopped_.load(std::memory_order_relaxed); }

bool Engine::IsReady() const {
  return is_started_.load() && IsLive() && !is_draining_.load(std::memory_order_relaxed) &&
         (!options_.strict_readiness || life_cycle_.AllReady());
}

base::Result<core::ModelHandle> Engine::FindModel(std::string_view name, std::string_view version) {
  if (!is_started_.load(std::memory_order_relaxed)) [[unlikely]] {
    return base::UnavailableError("Server not ready");
  }
  return life_cycle_.Table().Find(name, version);
}

base::Result<bool> Engine::IsModelReady(std::string_view name, std::string_view version) {
  const base::Result<core::ModelHandle> model = FindModel(name, version);
  if (model.ok()) return true;
  // Known but not ready is an answer; everything else is an error of the question.
  if (model.status().code() == base::StatusCode::kUnavailable) return false;
  return model.status();
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
  metadata.platform = config.platform.empty() ? config.backend : config.platform;
  metadata.inputs = DescribeTensors(model->inputs(), model->max_batch_size() > 0);
  metadata.outputs = DescribeTensors(model->outputs(), model->max_batch_size() > 0);
  return metadata;
}

base::Result<std::shared_ptr<const config::ModelConfig>> Engine::GetModelConfig(
    std::string_view name, std::string_view version) {
  NEREID_ASSIGN_OR_RETURN(const core::ModelHandle model, FindModel(name, version));
  return model->shared_config();
}

std::vector<service::IndexEntry> Engine::RepositoryIndex(bool only_ready) {
  return life_cycle_.Table().Index(only_ready);
}

base::Result<std::vector<service::ModelStatistics>> Engine::ReadStatistics(
    std::string_view name, std::string_view version) {
  if (!version.empty()) NEREID_RETURN_IF_ERROR(ParseVersion(version).status());
  std::vector<service::ModelStatistics> list;
  bool found_name = name.empty();
  for (const auto& model : life_cycle_.LoadedModels()) {
    if (!name.empty() && model->name() != name) continue;
    found_name = true;
    if (!version.empty() && model->version_text() != version) continue;
    list.push_back({model->name(), model->version_text(), model->statistics().Read()});
  }
  // Texts: core/src/tritonserver.cc, ServerModelStatistics.
  if (!found_name) {
    return base::InvalidArgumentError(
        fmt::format("requested model '{}' is not available", name));
  }
  if (list.empty() && !version.empty()) {
    return base::InvalidArgumentError(
        fmt::format("requested model version is not available for model '{}'", name));
  }
  return list;
}

void Engine::Infer(core::RequestPtr request) {
  if (request->times.request_start_ns == 0) request->times.request_start_ns = base::NowNs();
  if (base::Status status = NormalizeRequest(*request); !status.ok()) {
    request->model->statistics().RecordFailure(core::FailureReason::kOther,
                                               request->times.request_start_ns, base::NowNs());
    return core::Respond(std::move(request), std::move(status));
  }
  core::Scheduler& scheduler = request->model->scheduler();
  scheduler.Enqueue(std::move(request));
}

base::Result<core::ModelHandle> Engine::PinModel(std::string_view name, int64_t version) {
  return life_cycle_.Table().FindForStep(name, version);
}

void Engine::Cancel(core::Request& request) {
  request.Cancel();
  if (request.model) request.model->scheduler().OnCancelled(request);
}

std::string Engine::MetricsText() {
  return FormatMetrics(life_cycle_.LoadedModels(), life_cycle_.LoadTimes(), cache_ != nullptr);
}

}  // namespace nereid::engine
