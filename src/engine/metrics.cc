// SPDX-License-Identifier: Apache-2.0
// Names and kinds: core/src/metrics.cc and metric_model_reporter.cc of Triton.
#include "engine/metrics.h"

#include <array>
#include <functional>

#include "observe/metrics_page.h"

namespace nereid::engine {
namespace {

using core::StatisticsSnapshot;
using Kind = observe::MetricsPage::Kind;

struct Family {
  const char* name;
  const char* help;
  Kind kind;
  uint64_t (*read)(const StatisticsSnapshot&);
};

constexpr std::array<Family, 3> kCounts = {{
    {"nv_inference_count", "Number of inferences performed, a batch of n counting n",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.inference_count; }},
    {"nv_inference_exec_count", "Number of model executions performed", Kind::kCounter,
     [](const StatisticsSnapshot& s) { return s.execution_count; }},
    {"nv_inference_pending_request_count", "Requests waiting for an instance, per model",
     Kind::kGauge, [](const StatisticsSnapshot& s) { return s.pending_count; }},
}};

constexpr std::array<Family, 5> kDurations = {{
    {"nv_inference_request_duration_us", "Cumulative request duration in microseconds",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return (s.success.ns + s.fail.ns) / 1000; }},
    {"nv_inference_queue_duration_us", "Cumulative queuing duration in microseconds",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.queue.ns / 1000; }},
    {"nv_inference_compute_input_duration_us",
     "Cumulative duration of preparing inputs in microseconds", Kind::kCounter,
     [](const StatisticsSnapshot& s) { return s.compute_input.ns / 1000; }},
    {"nv_inference_compute_infer_duration_us", "Cumulative duration of execution in microseconds",
     Kind::kCounter, [](const StatisticsSnapshot& s) { return s.compute_infer.ns / 1000; }},
    {"nv_inference_compute_output_duration_us",
     "Cumulative duration of extracting outputs in microseconds", Kind::kCounter,
     [](const StatisticsSnapshot& s) { return s.compute_output.ns / 1000; }},
}};

// Of models that keep their responses.
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

struct Row {
  observe::Labels labels;
  StatisticsSnapshot statistics;
};

void AddFamily(observe::MetricsPage& page, const Family& family, const std::vector<Row>& rows) {
  page.StartFamily(family.name, family.help, family.kind);
  for (const Row& row : rows) {
    page.Add(row.labels, static_cast<double>(family.read(row.statistics)));
  }
}

template <size_t count>
void AddReasons(observe::MetricsPage& page, const observe::Labels& labels,
                const std::array<std::string_view, count>& reasons,
                const std::array<uint64_t, count>& values) {
  for (size_t i = 0; i < count; ++i) {
    observe::Labels with_reason = labels;
    with_reason.emplace_back("reason", std::string(reasons[i]));
    page.Add(std::move(with_reason), static_cast<double>(values[i]));
  }
}

observe::Labels LabelsFor(const std::string& model, const std::string& version,
                          const config::ModelConfig* config) {
  observe::Labels labels = {{"model", model}, {"version", version}};
  if (config != nullptr) {
    for (const auto& [key, value] : config->metric_tags) labels.emplace_back("_" + key, value);
  }
  return labels;
}

}  // namespace

std::string FormatMetrics(const std::vector<std::shared_ptr<core::Model>>& models,
                          const std::vector<LifeCycle::LoadTime>& load_times,
                          bool has_cache) {
  std::vector<Row> rows;
  std::vector<Row> caching_rows;
  for (const auto& model : models) {
    rows.push_back({LabelsFor(model->name(), model->version_text(), &model->config()),
                    model->statistics().Read()});
    if (has_cache && model->config().caches_responses()) caching_rows.push_back(rows.back());
  }
  observe::MetricsPage page;
  page.StartFamily("nv_inference_request_success", "Number of successful inference requests",
                   Kind::kCounter);
  for (const Row& row : rows) {
    page.Add(row.labels, static_cast<double>(row.statistics.success.count));
  }
  page.StartFamily("nv_inference_request_failure",
                   "Number of failed inference requests, by reason", Kind::kCounter);
  for (const Row& row : rows) AddReasons(page, row.labels, core::kFailureReasonNames, row.statistics.failures);
  page.StartFamily("nereid_batches_closed_total",
                   "Number of executed batches, by why they did not wait to grow", Kind::kCounter);
  for (const Row& row : rows) AddReasons(page, row.labels, core::kBatchClosedNames, row.statistics.batches_closed);
  for (const Family& family : kCounts) AddFamily(page, family, rows);
  for (const Family& family : kDurations) AddFamily(page, family, rows);
  if (!caching_rows.empty()) {
    for (const Family& family : kCaching) AddFamily(page, family, caching_rows);
  }
  page.StartFamily("nv_model_load_duration_secs", "Time the model took to load, in seconds",
                   Kind::kGauge);
  for (const LifeCycle::LoadTime& time : load_times) {
    page.Add(LabelsFor(time.model, std::to_string(time.version), nullptr), time.seconds);
  }
  return page.Text();
}

}  // namespace nereid::engine
