// SPDX-License-Identifier: Apache-2.0
// How the settings of a model and of the server combine follows Triton's server/src/tracer.cc,
// TraceManager.
#include "observe/trace.h"

#include <array>

#include "base/log.h"
#include "observe/trace_group.h"
#include "observe/trace_output.h"
#include "observe/trace_sampler.h"

namespace nereid::observe {

const char* TraceActivityName(TraceActivity activity) {
  static constexpr std::array<const char*, 11> kNames = {
      "REQUEST_START",        "QUEUE_START",           "COMPUTE_START",  "COMPUTE_INPUT_END",
      "COMPUTE_OUTPUT_START", "COMPUTE_END",           "REQUEST_END",    "TENSOR_QUEUE_INPUT",
      "TENSOR_BACKEND_INPUT", "TENSOR_BACKEND_OUTPUT", "CUSTOM_ACTIVITY"};
  const auto index = static_cast<size_t>(activity);
  return index < kNames.size() ? kNames[index] : "<unknown>";
}

Trace::Trace(std::shared_ptr<TraceRecorder> recorder, uint64_t id, uint64_t parent_id)
    : recorder_(std::move(recorder)),
      levels_(recorder_->levels()),
      id_(id),
      parent_id_(parent_id) {}

std::shared_ptr<Trace> Trace::Share(std::unique_ptr<Trace> trace) {
  return {trace.release(), [](Trace* last) {
            const std::shared_ptr<TraceRecorder> recorder = last->recorder_;
            recorder->Release(std::unique_ptr<Trace>(last));
          }};
}

void Trace::Describe(std::string_view model, int64_t version, std::string_view request_id) {
  model_ = model;
  version_ = version;
  request_id_ = request_id;
}

void Trace::Report(TraceActivity activity, uint64_t ns) {
  if (wants_timestamps()) recorder_->Report(*this, activity, TraceActivityName(activity), ns);
}

void Trace::ReportCustom(std::string_view name, uint64_t ns) {
  if (wants_timestamps()) recorder_->Report(*this, TraceActivity::kCustom, name, ns);
}

void Trace::ReportFrontend(std::string_view name, uint64_t ns) {
  if (wants_timestamps()) recorder_->ReportFrontend(name, ns);
}

void Trace::ReportTensor(TraceActivity activity, const TensorView& tensor) {
  if (wants_tensors()) recorder_->ReportTensor(*this, activity, tensor);
}

std::unique_ptr<Trace> Trace::SpawnChild() const {
  return std::make_unique<Trace>(recorder_, recorder_->NextId(), id_);
}

const char* Trace::context() const {
  base::MutexLock lock(mutex_);
  return contexts_.empty() ? "" : contexts_.back().c_str();
}

void Trace::SetContext(std::string context) {
  base::MutexLock lock(mutex_);
  contexts_.push_back(std::move(context));
}

// The settings of the server or of a model, and which of them were set explicitly.
struct Tracing::Entry {
  std::shared_ptr<TraceSampler> sampler;
  bool has_levels = false;
  bool has_rate = false;
  bool has_count = false;
  bool has_log_frequency = false;

  bool has_none() const { return !has_levels && !has_rate && !has_count && !has_log_frequency; }
};

Tracing::Tracing(TraceOptions options)
    : options_(std::move(options)),
      output_(std::make_shared<TraceOutput>(options_.mode == TraceMode::kTriton ? options_.file
                                                                                : std::string())) {
  if (options_.mode == TraceMode::kOpenTelemetry) {
    auto exporter = OtlpExporter::Start(options_.otlp);
    // The options were validated on the command line, so the only possible error is a thread that
    // could not be started.
    if (exporter.ok()) {
      output_->exporter = std::move(*exporter);
    } else {
      NEREID_LOG(kError, "traces are not exported: {}", exporter.status().message());
    }
  }
  base::MutexLock lock(mutex_);
  server_ = std::make_unique<Entry>();
  server_->sampler = std::make_shared<TraceSampler>(options_.settings, options_.mode, output_);
  UpdateSwitch();
}

Tracing::~Tracing() = default;

void Tracing::UpdateSwitch() {
  bool is_on = server_->sampler->is_on();
  for (const auto& [name, entry] : models_) is_on = is_on || entry->sampler->is_on();
  is_on_.store(is_on && (options_.mode == TraceMode::kTriton || output_->exporter != nullptr));
}

std::shared_ptr<Trace> Tracing::Start(std::string_view model, const TraceContext& context) {
  std::shared_ptr<TraceSampler> sampler;
  {
    base::MutexLock lock(mutex_);
    const auto found = models_.find(model);
    sampler = found == models_.end() ? server_->sampler : found->second->sampler;
  }
  std::optional<SpanContext> remote;
  if (options_.mode == TraceMode::kOpenTelemetry && !context.traceparent.empty()) {
    remote = ParseTraceParent(context.traceparent, context.tracestate);
  }
  if (!sampler->Sample(remote.has_value())) return nullptr;
  auto group = std::make_shared<TraceGroup>(std::move(sampler), std::move(remote));
  const uint64_t id = group->NextId();
  group->SetRoot(id);
  return Trace::Share(std::make_unique<Trace>(std::move(group), id, 0));
}

namespace {

template <typename T>
void Merge(const TraceField<T>& change, T current, T fallback, bool& is_own, T& result) {
  is_own = !change.is_cleared && (is_own || change.value.has_value());
  result = is_own ? change.value.value_or(current) : fallback;
}

}  // namespace

base::Result<std::unique_ptr<Tracing::Entry>> Tracing::MakeChanged(
    const Entry* current, const TraceChange& change, const TraceSettings& fallback) const {
  const TraceSettings before = current == nullptr ? fallback : current->sampler->settings();
  auto entry = std::make_unique<Entry>(current == nullptr ? Entry() : *current);
  TraceSettings settings;
  Merge(change.levels, before.levels, fallback.levels, entry->has_levels, settings.levels);
  Merge(change.rate, before.rate, fallback.rate, entry->has_rate, settings.rate);
  Merge(change.count, before.count, fallback.count, entry->has_count, settings.count);
  Merge(change.log_frequency, before.log_frequency, fallback.log_frequency,
        entry->has_log_frequency, settings.log_frequency);
  entry->sampler = std::make_shared<TraceSampler>(settings, options_.mode, output_);
  if (const char* const why = entry->sampler->WhyInvalid();
      *why != '\0' && settings.levels != kTraceOff) {
    return base::InvalidArgumentError(std::string("Attempting to set invalid trace setting :") +
                                      why);
  }
  return entry;
}

base::Status Tracing::ChangeServer(const TraceChange& change) {
  NEREID_ASSIGN_OR_RETURN(std::unique_ptr<Entry> server,
                          MakeChanged(server_.get(), change, options_.settings));
  // Models inherit the settings that they have not set themselves. All change, or none.
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> models;
  for (const auto& [name, entry] : models_) {
    auto changed = MakeChanged(entry.get(), {}, server->sampler->settings());
    if (!changed.ok()) {
      return base::Status(changed.status().code(), std::string(changed.status().message()) +
                                                       ", with those of model '" + name + "'");
    }
    models[name] = std::move(*changed);
  }
  server_ = std::move(server);
  models_ = std::move(models);
  return base::OkStatus();
}

base::Status Tracing::ChangeModel(const std::string& model, const TraceChange& change) {
  const auto found = models_.find(model);
  NEREID_ASSIGN_OR_RETURN(std::unique_ptr<Entry> entry,
                          MakeChanged(found == models_.end() ? nullptr : found->second.get(),
                                      change, server_->sampler->settings()));
  if (entry->has_none()) {
    models_.erase(model);
  } else {
    models_[model] = std::move(entry);
  }
  return base::OkStatus();
}

base::Status Tracing::Change(const std::string& model, const TraceChange& change) {
  base::MutexLock lock(mutex_);
  NEREID_RETURN_IF_ERROR(model.empty() ? ChangeServer(change) : ChangeModel(model, change));
  UpdateSwitch();
  return base::OkStatus();
}

RecentTraces& Tracing::recent() { return output_->recent; }

TraceView Tracing::Read(const std::string& model) const {
  base::MutexLock lock(mutex_);
  const auto found = models_.find(model);
  const Entry& entry = found == models_.end() ? *server_ : *found->second;
  return {.settings = entry.sampler->settings(),
          .mode = options_.mode,
          .file = options_.file,
          .shown = options_.shown};
}

}  // namespace nereid::observe
