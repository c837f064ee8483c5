// SPDX-License-Identifier: Apache-2.0
// Names, descriptions and kinds follow Triton's core/src/metrics.cc and metric_model_reporter.cc.
#include "engine/metrics.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "base/log.h"
#include "engine/traffic_metrics.h"
#include "observe/custom_metrics.h"
#include "observe/metrics_page.h"
#include "observe/process_metrics.h"

namespace nereid::engine {
namespace {

using core::StatisticsSnapshot;
using observe::MetricsPage;
using Kind = MetricsPage::Kind;

// The data of one model on the page.
struct Row {
  core::Model* model = nullptr;
  std::vector<std::pair<std::string, std::string>> names;
  std::string labels;
  StatisticsSnapshot statistics;
  bool is_caching = false;
  double load_seconds = 0;
  double oldest_seconds = 0;
  size_t instance_count = 0;
};
using Rows = std::vector<Row>;

// A family with one value per model.
struct Family {
  const char* name;
  const char* help;
  Kind kind;
  uint64_t (*read)(const StatisticsSnapshot&);
};

constexpr std::array<Family, 3> kCounts = {{
    {"nv_inference_request_success", "Number of successful inference requests, all batch sizes",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.success.count; }},
    {"nv_inference_count", "Number of inferences performed (does not include cached requests)",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.inference_count; }},
    {"nv_inference_exec_count",
     "Number of model executions performed (does not include cached requests)", Kind::kCounter,
     [](const StatisticsSnapshot& s) { return s.execution_count; }},
}};

constexpr Family kPending = {
    "nv_inference_pending_request_count",
    "Instantaneous number of pending requests awaiting execution per-model.", Kind::kGauge,
    [](const StatisticsSnapshot& s) { return s.pending_count; }};

constexpr std::array<Family, 5> kDurations = {{
    {"nv_inference_request_duration_us",
     "Cumulative inference request duration in microseconds (includes cached requests)",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.success.ns / 1000; }},
    {"nv_inference_queue_duration_us",
     "Cumulative inference queuing duration in microseconds (includes cached requests)",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.queue.ns / 1000; }},
    {"nv_inference_compute_input_duration_us",
     "Cumulative compute input duration in microseconds (does not include cached requests)",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.compute_input.ns / 1000; }},
    {"nv_inference_compute_infer_duration_us",
     "Cumulative compute inference duration in microseconds (does not include cached requests)",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.compute_infer.ns / 1000; }},
    {"nv_inference_compute_output_duration_us",
     "Cumulative inference compute output duration in microseconds (does not include cached "
     "requests)",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.compute_output.ns / 1000; }},
}};

// Families of models whose responses are cached.
constexpr std::array<Family, 4> kCaching = {{
    {"nv_cache_num_hits_per_model", "Number of cache hits per model", Kind::kCounter,
     [](const StatisticsSnapshot& s) { return s.cache_hit.count; }},
    {"nv_cache_num_misses_per_model", "Number of cache misses per model", Kind::kCounter,
     [](const StatisticsSnapshot& s) { return s.cache_miss.count; }},
    {"nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.cache_hit.ns / 1000; }},
    {"nv_cache_miss_duration_per_model",
     "Total cache miss (insert+lookup) duration per model, in microseconds", Kind::kCounter,
     [](const StatisticsSnapshot& s) { return s.cache_miss.ns / 1000; }},
}};

// A family with one summary per model.
struct SummaryFamily {
  const char* name;
  const char* help;
  std::unique_ptr<observe::Summary> core::Observers::* summary;
};

constexpr std::array<SummaryFamily, 7> kSummaries = {{
    {"nv_inference_request_summary_us",
     "Summary of inference request duration in microseconds (includes cached requests)",
     &core::Observers::request},
    {"nv_inference_queue_summary_us",
     "Summary of inference queuing duration in microseconds (includes cached requests)",
     &core::Observers::queue},
    {"nv_inference_compute_input_summary_us",
     "Cumulative compute input duration in microseconds (does not include cached requests)",
     &core::Observers::compute_input},
    {"nv_inference_compute_infer_summary_us",
     "Cumulative compute inference duration in microseconds (does not include cached requests)",
     &core::Observers::compute_infer},
    {"nv_inference_compute_output_summary_us",
     "Cumulative inference compute output duration in microseconds (does not include cached "
     "requests)",
     &core::Observers::compute_output},
    {"nv_cache_hit_summary_per_model",
     "Summary of cache hit counts/durations per model, in microseconds.",
     &core::Observers::cache_hit},
    {"nv_cache_miss_summary_per_model",
     "Summary of cache miss counts/durations per model, in microseconds.",
     &core::Observers::cache_miss},
}};

constexpr const char* kFirstResponse = "nv_inference_first_response_histogram_ms";

// A family with one histogram per model.
struct OwnHistogram {
  const char* name;
  const char* help;
  core::DurationBuckets StatisticsSnapshot::* buckets;
  uint64_t (*sum_ns)(const StatisticsSnapshot&);
};

// Our own histograms. All models have the same bounds, so that histograms of several servers can be
// added up.
constexpr std::array<OwnHistogram, 3> kOwn = {{
    {"nereid_request_duration_seconds", "Duration of successful requests, from arrival to response",
     &StatisticsSnapshot::request_buckets,
     [](const StatisticsSnapshot& s) { return s.success.ns; }},
    {"nereid_queue_duration_seconds", "Time that successful requests waited for an instance",
     &StatisticsSnapshot::queue_buckets, [](const StatisticsSnapshot& s) { return s.queue.ns; }},
    {"nereid_compute_duration_seconds",
     "Time that the execution of successful requests took, input and output included",
     &StatisticsSnapshot::compute_buckets,
     [](const StatisticsSnapshot& s) {
       return s.compute_input.ns + s.compute_infer.ns + s.compute_output.ns;
     }},
}};

constexpr std::array<double, core::kDurationBoundsNs.size()> kBoundsSeconds = [] {
  std::array<double, core::kDurationBoundsNs.size()> bounds{};
  for (size_t i = 0; i < bounds.size(); ++i) {
    bounds[i] = static_cast<double>(core::kDurationBoundsNs[i]) / 1e9;
  }
  return bounds;
}();

constexpr std::array<double, 11> kBatchBounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

void AddFamily(MetricsPage& page, const Family& family, const Rows& rows,
               bool only_caching = false) {
  page.StartFamily(family.name, family.help, family.kind);
  for (const Row& row : rows) {
    if (only_caching && !row.is_caching) continue;
    page.Add(row.labels, static_cast<double>(family.read(row.statistics)));
  }
}

// How to print the reasons that are zero; in some families most reasons are zero for most models.
enum class ZeroReasons : bool { kAdded, kLeftOut };

template <size_t count>
void AddReasons(MetricsPage& page, const Row& row,
                const std::array<std::string_view, count>& reasons,
                const std::array<uint64_t, count>& values,
                ZeroReasons zeros = ZeroReasons::kAdded) {
  for (size_t i = 0; i < count; ++i) {
    if (zeros == ZeroReasons::kLeftOut && values[i] == 0) continue;
    observe::Labels labels = row.names;
    labels.emplace_back("reason", std::string(reasons[i]));
    page.Add(observe::RenderLabels(std::move(labels)), static_cast<double>(values[i]));
  }
}

void AddSummaries(MetricsPage& page, const Rows& rows) {
  for (const SummaryFamily& family : kSummaries) {
    page.StartFamily(family.name, family.help, Kind::kSummary);
    for (const Row& row : rows) {
      const core::Observers* const observers = row.model->statistics().observers();
      if (observers == nullptr || observers->*family.summary == nullptr) continue;
      page.AddSummary(row.labels, (observers->*family.summary)->Read());
    }
  }
}

void AddFirstResponses(MetricsPage& page, const Rows& rows) {
  page.StartFamily(kFirstResponse, "Duration from request to first response in milliseconds",
                   Kind::kHistogram);
  for (const Row& row : rows) {
    const core::Observers* const observers = row.model->statistics().observers();
    if (observers == nullptr || observers->first_response == nullptr) continue;
    const core::FirstResponses& seen = *observers->first_response;
    const std::vector<uint64_t> counts = seen.Counts();
    page.AddHistogram(row.labels, {seen.bounds_ms(), counts, static_cast<double>(seen.sum_ms())});
  }
}

void AddOwnHistograms(MetricsPage& page, const Rows& rows) {
  for (const OwnHistogram& family : kOwn) {
    page.StartFamily(family.name, family.help, Kind::kHistogram);
    for (const Row& row : rows) {
      page.AddHistogram(row.labels, {kBoundsSeconds, row.statistics.*family.buckets,
                                     static_cast<double>(family.sum_ns(row.statistics)) / 1e9});
    }
  }
  page.StartFamily("nereid_batch_size", "Requested inferences per execution", Kind::kHistogram);
  for (const Row& row : rows) {
    std::array<uint64_t, kBatchBounds.size() + 1> counts{};
    uint64_t sum = 0;
    for (const auto& [size, batch] : row.statistics.batches) {
      size_t bucket = 0;
      while (bucket < kBatchBounds.size() && static_cast<double>(size) > kBatchBounds[bucket]) {
        ++bucket;
      }
      counts[bucket] += batch.compute_infer.count;
      sum += size * batch.compute_infer.count;
    }
    page.AddHistogram(row.labels, {kBatchBounds, counts, static_cast<double>(sum)});
  }
}

// What an autoscaler asks: whether requests wait and how long, how many there are, and which share
// of the time instances execute.
void AddLoad(MetricsPage& page, const Rows& rows) {
  const auto add = [&](const char* name, const char* help, Kind kind, auto read) {
    page.StartFamily(name, help, kind);
    for (const Row& row : rows) page.Add(row.labels, static_cast<double>(read(row)));
  };
  add("nereid_queue_oldest_seconds",
      "How long the request that has waited longest for an instance waits", Kind::kGauge,
      [](const Row& row) { return row.oldest_seconds; });
  add("nereid_model_requests_in_flight",
      "Requests from clients that have arrived and are not answered", Kind::kGauge,
      [](const Row& row) { return row.model->request_count(); });
  add("nereid_model_request_bytes_in_flight", "Bytes of the messages and bodies of these requests",
      Kind::kGauge, [](const Row& row) { return row.model->request_bytes(); });
  add("nereid_execution_seconds_total",
      "Time that instances spent executing, input and output included", Kind::kCounter,
      [](const Row& row) {
        uint64_t ns = 0;
        for (const auto& [size, batch] : row.statistics.batches) {
          ns += batch.compute_input.ns + batch.compute_infer.ns + batch.compute_output.ns;
        }
        return static_cast<double>(ns) / 1e9;
      });
  add("nereid_model_instances", "Instances of the model; an ensemble has none", Kind::kGauge,
      [](const Row& row) { return row.instance_count; });
}

// Only models whose backends report their memory have lines.
void AddMemory(MetricsPage& page, const Rows& rows) {
  page.StartFamily("nereid_model_memory_bytes",
                   "Memory that the model holds, as its backend reports it, in bytes",
                   Kind::kGauge);
  for (const Row& row : rows) {
    for (const core::MemoryUse& use : row.statistics.memory) {
      observe::Labels labels = row.names;
      labels.emplace_back("memory_type", std::string(memory::MemoryTypeName(use.where.type)));
      labels.emplace_back("memory_id", std::to_string(use.where.id));
      page.Add(observe::RenderLabels(std::move(labels)), static_cast<double>(use.bytes));
    }
  }
}

void AddBudgets(MetricsPage& page, const core::Budgets& budgets) {
  const std::vector<core::BudgetReading> readings = budgets.Read();
  const auto labels = [](const core::BudgetReading& reading) {
    return observe::RenderLabels({{"budget", std::string(reading.name)}});
  };
  page.StartFamily("nereid_budget_limit", "Most that clients together can make the server hold",
                   Kind::kGauge);
  for (const auto& reading : readings)
    page.Add(labels(reading), static_cast<double>(reading.limit));
  page.StartFamily("nereid_budget_used", "How much of that they make it hold now", Kind::kGauge);
  for (const auto& reading : readings) {
    if (reading.used) page.Add(labels(reading), static_cast<double>(*reading.used));
  }
  page.StartFamily("nereid_budget_refusals_total",
                   "Number of connections, requests and loads refused because of a budget",
                   Kind::kCounter);
  for (const auto& reading : readings) {
    page.Add(labels(reading), static_cast<double>(reading.refusals));
  }
}

// Adds a family with one value, or one for each of several labels.
void AddValues(MetricsPage& page, const char* name, const char* help, Kind kind,
               const std::vector<std::pair<observe::Labels, double>>& values) {
  page.StartFamily(name, help, kind);
  for (const auto& [labels, value] : values) {
    page.Add(labels.empty() ? std::string() : observe::RenderLabels(labels), value);
  }
}

void AddOnDemand(MetricsPage& page, const OnDemandCounts& counts) {
  const auto number = [](auto count) { return static_cast<double>(count); };
  AddValues(page, "nereid_on_demand_models", "Number of models by state", Kind::kGauge,
            {{{{"state", "known"}}, number(counts.known)},
             {{{"state", "loaded"}}, number(counts.loaded)}});
  AddValues(page, "nereid_on_demand_loads_total", "Number of loads of models, by result",
            Kind::kCounter,
            {{{{"result", "success"}}, number(counts.loads)},
             {{{"result", "failure"}}, number(counts.failed_loads)}});
  AddValues(page, "nereid_on_demand_load_seconds_total", "Time that loads of models took",
            Kind::kCounter, {{{}, counts.load_seconds}});
  AddValues(page, "nereid_on_demand_unloads_total", "Number of models unloaded, by reason",
            Kind::kCounter,
            {{{{"reason", "memory"}}, number(counts.memory_evictions)},
             {{{"reason", "idle"}}, number(counts.idle_unloads)}});
  AddValues(page, "nereid_on_demand_waiting_requests", "Number of requests that wait for a model",
            Kind::kGauge, {{{}, number(counts.waiting)}});
  AddValues(page, "nereid_on_demand_waits_total", "Number of requests that waited for a model",
            Kind::kCounter, {{{}, number(counts.waits)}});
  AddValues(page, "nereid_on_demand_wait_seconds_total", "Time that requests waited for models",
            Kind::kCounter, {{{}, counts.wait_seconds}});
  AddValues(page, "nereid_on_demand_refusals_total",
            "Number of requests that waited for a model in vain, by reason", Kind::kCounter,
            {{{{"reason", "timeout"}}, number(counts.timeouts)},
             {{{"reason", "budget"}}, number(counts.refusals)}});
  page.StartFamily("nereid_on_demand_memory_bytes",
                   "Memory that loaded models took when they were loaded", Kind::kGauge);
  for (size_t i = 0; i < counts.kinds.size(); ++i) {
    page.Add(observe::RenderLabels({{"memory", counts.kinds[i]}}), number(counts.used[i]));
  }
  page.StartFamily("nereid_on_demand_budget_bytes", "Most memory that models may take",
                   Kind::kGauge);
  for (size_t i = 0; i < counts.kinds.size(); ++i) {
    if (counts.budgets[i] == 0) continue;
    page.Add(observe::RenderLabels({{"memory", counts.kinds[i]}}), number(counts.budgets[i]));
  }
}

// A family that has lines only while something is wrong. A repository may have thousands of models
// that fail for one reason, and nereid_model_versions counts them all.
void AddFailedVersions(MetricsPage& page, const ModelTable& table) {
  constexpr size_t kMaxFailed = 100;
  page.StartFamily("nereid_model_load_failed",
                   "The versions that could not be loaded, at most 100 of them", Kind::kGauge);
  size_t count = 0;
  for (const auto& [id, record] : table.models()) {
    for (const auto& [version, state] : record->versions) {
      if (state.state != VersionState::kUnavailable || state.reason == kUnloadedReason) continue;
      if (count++ == kMaxFailed) return;
      observe::Labels labels = {{"model", id.name}, {"version", std::to_string(version)}};
      if (!id.name_space.empty()) labels.emplace_back("namespace", id.name_space);
      page.Add(observe::RenderLabels(std::move(labels)), 1);
    }
  }
}

// Whether the server and its models can be used, as /v2/health says; but backends are not asked,
// which may take time.
void AddReadiness(MetricsPage& page, const MetricsSources& sources, const Rows& rows) {
  bool can_all = true;
  page.StartFamily("nereid_model_ready", "Whether an instance of the model can execute",
                   Kind::kGauge);
  for (const Row& row : rows) {
    const bool can = sources.health.CanExecute(*row.model);
    can_all = can_all && can;
    page.Add(row.labels, can ? 1 : 0);
  }
  page.StartFamily("nereid_model_versions",
                   "Versions of models by state, without those that were unloaded", Kind::kGauge);
  std::map<VersionState, uint64_t> counts;
  for (const auto& [id, record] : sources.table.models()) {
    for (const auto& [version, state] : record->versions) {
      if (state.reason != kUnloadedReason) ++counts[state.state];
    }
  }
  for (const VersionState state : {VersionState::kReady, VersionState::kLoading,
                                   VersionState::kUnloading, VersionState::kUnavailable}) {
    page.Add(observe::RenderLabels({{"state", std::string(StateName(state))}}),
             static_cast<double>(counts[state]));
  }
  AddFailedVersions(page, sources.table);
  const bool is_ready = sources.is_live && sources.is_serving &&
                        (!sources.needs_models || (sources.table.all_ready() && can_all));
  page.StartFamily("nereid_server_live", "Whether no restart is needed", Kind::kGauge);
  page.Add("", sources.is_live ? 1 : 0);
  page.StartFamily("nereid_server_ready", "Whether the server takes requests for all of its models",
                   Kind::kGauge);
  page.Add("", is_ready ? 1 : 0);
}

core::SchedulerLoad ReadLoad(core::Model& model) {
  // A version that is being torn down has nothing that waits.
  if (!model.TryPin()) return {};
  const core::ModelHandle pin(model);
  return pin->scheduler().ReadLoad();
}

double SecondsSince(uint64_t since_ns) {
  const uint64_t now_ns = base::NowNs();
  if (since_ns == 0 || since_ns > now_ns) return 0;
  return static_cast<double>(now_ns - since_ns) / 1e9;
}

Rows MakeRows(const std::vector<LifeCycle::Loaded>& models, bool has_cache) {
  Rows rows;
  for (const auto& [id, model, load_seconds] : models) {
    Row& row = rows.emplace_back();
    row.model = model.get();
    row.names = {{"model", model->name()}, {"version", model->version_text()}};
    if (!id.name_space.empty()) row.names.emplace_back("namespace", id.name_space);
    for (const auto& [key, value] : model->config().metric_tags) {
      row.names.emplace_back("_" + key, value);
    }
    row.labels = observe::RenderLabels(row.names);
    row.statistics = model->statistics().Read();
    row.is_caching = has_cache && model->config().caches_responses();
    row.load_seconds = load_seconds;
    const core::SchedulerLoad load = ReadLoad(*row.model);
    row.instance_count = load.instance_count;
    row.oldest_seconds = SecondsSince(load.oldest_waiting_ns);
  }
  return rows;
}

}  // namespace

core::ObserveOptions ObserveOptionsFor(const config::ModelConfig& model,
                                       const MetricsConfig& config, bool has_cache) {
  core::ObserveOptions options;
  if (!config.is_allowed) return options;
  options.is_cached = has_cache && model.caches_responses();
  if (config.summary_latencies) options.quantiles = config.summary_quantiles;
  if (config.histogram_latencies) {
    options.first_response_bounds_ms = std::vector<double>{100, 500, 2000, 5000};
  }
  if (!model.model_metrics) return options;
  for (const config::MetricControl& control : *model.model_metrics) {
    const std::string family = control.metric_family.value_or("");
    if (family != kFirstResponse) {
      NEREID_LOG(kWarning,
                 "Metric family '{}' in 'metric_identifier' is not a customizable metric in Triton "
                 "core.",
                 family);
    } else if (options.first_response_bounds_ms) {
      options.first_response_bounds_ms = control.histogram_buckets.value_or(std::vector<double>());
    }
  }
  return options;
}

service::LoadTotals SumLoads(const std::vector<std::shared_ptr<core::Model>>& models) {
  service::LoadTotals totals;
  for (const std::shared_ptr<core::Model>& model : models) {
    totals.requests_in_flight += model->request_count();
    const double oldest_seconds = SecondsSince(ReadLoad(*model).oldest_waiting_ns);
    totals.queue_oldest_seconds = std::max(totals.queue_oldest_seconds, oldest_seconds);
  }
  return totals;
}

Metrics::Metrics(MetricsConfig config, const memory::Gpus& gpus)
    : config_(std::move(config)), gpus_(gpus) {
  if (!config_.is_allowed) return;
  if (config_.has_cpu) cpu_ = std::make_unique<observe::CpuMetrics>(config_.interval);
  if (!config_.has_gpu || std::getenv("TRITON_SERVER_CPU_ONLY") != nullptr) return;
  auto gpu = observe::GpuMetrics::Open(observe::kNvmlLibrary, config_.interval);
  if (gpu.ok()) {
    NEREID_LOG(kInfo, "Collecting metrics for {} GPUs", (*gpu)->gpu_count());
    gpu_ = std::move(*gpu);
  } else {
    NEREID_VLOG(1, "no GPU metrics: {}", gpu.status().message());
  }
}

std::vector<observe::GpuReading> Metrics::ReadGpus() const {
  if (gpu_ == nullptr) return {};
  return gpu_->Read();
}

std::string Metrics::Page(const MetricsSources& sources) {
  const Rows rows = MakeRows(sources.models, sources.has_cache);
  MetricsPage page;
  for (const Family& family : kCounts) AddFamily(page, family, rows);
  page.StartFamily("nv_inference_request_failure",
                   "Number of failed inference requests, all batch sizes", Kind::kCounter);
  for (const Row& row : rows) {
    AddReasons(page, row, core::kFailureReasonNames, row.statistics.failures);
  }
  if (config_.counter_latencies) {
    for (const Family& family : kDurations) AddFamily(page, family, rows);
    for (const Family& family : kCaching) AddFamily(page, family, rows, true);
  }
  AddFamily(page, kPending, rows);
  AddSummaries(page, rows);
  AddFirstResponses(page, rows);
  page.StartFamily("nv_model_load_duration_secs", "Model load time in seconds", Kind::kGauge);
  for (const Row& row : rows) page.Add(row.labels, row.load_seconds);
  page.StartFamily("nv_pinned_memory_pool_total_bytes",
                   "Pinned memory pool total memory size, in bytes", Kind::kGauge);
  page.Add("", static_cast<double>(gpus_.pinned_pool_bytes()));
  page.StartFamily("nv_pinned_memory_pool_used_bytes",
                   "Pinned memory pool used memory size, in bytes", Kind::kGauge);
  page.Add("", static_cast<double>(gpus_.UsedPinnedBytes()));
  if (cpu_ != nullptr) cpu_->AddTo(page);
  if (gpu_ != nullptr) gpu_->AddTo(page);
  page.StartFamily("nereid_batches_closed_total",
                   "Number of executed batches, by why they did not wait to grow", Kind::kCounter);
  for (const Row& row : rows) {
    AddReasons(page, row, core::kBatchClosedNames, row.statistics.batches_closed,
               ZeroReasons::kLeftOut);
  }
  page.StartFamily("nereid_overload_refusals_total",
                   "Number of requests refused to keep an overloaded model useful, by reason",
                   Kind::kCounter);
  for (const Row& row : rows) {
    // A rate needs the zero before the first refusal. A model without requests has none to refuse,
    // and a page may have a thousand of those.
    const bool is_used = row.statistics.success.count > 0;
    AddReasons(page, row, core::kRefusalNames, row.statistics.refusals,
               is_used ? ZeroReasons::kAdded : ZeroReasons::kLeftOut);
  }
  AddLoad(page, rows);
  AddMemory(page, rows);
  AddReadiness(page, sources, rows);
  sources.health.AddTo(page);
  AddTraffic(page, sources.table);
  AddBudgets(page, sources.budgets);
  if (sources.on_demand) AddOnDemand(page, *sources.on_demand);
  observe::AddProcessMetrics(page);
  if (config_.nereid_histograms) AddOwnHistograms(page, rows);
  observe::AddCustomMetrics(page);  // the last ones, because the server's own names come first
  return page.Take();
}

}  // namespace nereid::engine
