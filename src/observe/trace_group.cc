// SPDX-License-Identifier: Apache-2.0
// The format of records and the choice of spans follow Triton's server/src/tracer.cc.
#include "observe/trace_group.h"

#include <chrono>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "observe/tensor_text.h"

namespace nereid::observe {
namespace {

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

uint64_t UnixOffset() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) -
         base::NowNs();
}

}  // namespace

TraceGroup::TraceGroup(std::shared_ptr<TraceSampler> sampler, std::optional<SpanContext> remote)
    : sampler_(std::move(sampler)),
      unix_offset_ns_(UnixOffset()),
      is_kept_(sampler_->output().recent.keeps()) {
  if (!is_telemetry()) return;
  if (remote) {
    identity_ = *remote;
  } else {
    identity_.trace_id = RandomTraceId();
  }
}

void TraceGroup::SetRoot(uint64_t id) {
  root_id_ = id;
  if (!is_telemetry()) return;
  base::MutexLock lock(mutex_);
  const bool is_remote = identity_.span_id != SpanIdBytes{};
  spans_[id].push_back(NewSpan("InferRequest", base::NowNs(), is_remote ? &identity_ : nullptr));
}

TraceGroup::~TraceGroup() {
  base::MutexLock lock(mutex_);
  if (is_kept_) {
    const uint64_t unix_ms = ToUnix(base::NowNs()) / 1'000'000;
    RecentTrace trace = recent_.Take(root_id_, static_cast<int64_t>(unix_ms));
    // A trace of tensors alone has no times.
    if (!trace.requests.empty()) sampler_->output().recent.Add(std::move(trace));
  }
  Pass();
}

// Passes on what was recorded.
void TraceGroup::Pass() {
  if (is_telemetry()) {
    const uint64_t now = base::NowNs();
    // The root span, which encloses all others, ends last.
    Spans root = std::move(spans_[root_id_]);
    spans_.erase(root_id_);
    for (auto& [id, spans] : spans_) {
      while (!spans.empty()) EndSpan(spans, now);
    }
    while (!root.empty()) EndSpan(root, now);
    return;
  }
  std::string all;
  for (const auto& [id, records] : records_) {
    if (!all.empty()) all += ',';
    all += records;
  }
  sampler_->Collect(all);
}

std::string& TraceGroup::Records(uint64_t id) {
  std::string& records = records_[id];
  if (!records.empty()) records += ',';
  return records;
}

void TraceGroup::AddTimestamp(uint64_t id, std::string_view name, uint64_t ns) {
  std::string& records = Records(id);
  fmt::format_to(std::back_inserter(records), "{{\"id\":{},\"timestamps\":[{{\"name\":", id);
  AppendString(records, name);
  fmt::format_to(std::back_inserter(records), ",\"ns\":{}}}]}}", ns);
}

void TraceGroup::Report(Trace& trace, TraceActivity activity, std::string_view name, uint64_t ns) {
  base::MutexLock lock(mutex_);
  if (is_kept_) {
    if (activity == TraceActivity::kRequestStart) {
      recent_.Describe(trace.id(), trace.parent_id(), trace.model(), trace.version(),
                       trace.request_id());
    }
    recent_.Add(trace.id(), name, ns);
  }
  if (is_telemetry()) return AddSpanEvent(trace, activity, name, ns);
  if (activity == TraceActivity::kRequestStart) {
    std::string& records = Records(trace.id());
    fmt::format_to(std::back_inserter(records), "{{\"id\":{},\"model_name\":", trace.id());
    AppendString(records, trace.model());
    fmt::format_to(std::back_inserter(records), ",\"model_version\":{}", trace.version());
    if (!trace.request_id().empty()) {
      records += ",\"request_id\":";
      AppendString(records, trace.request_id());
    }
    if (trace.parent_id() != 0) {
      fmt::format_to(std::back_inserter(records), ",\"parent_id\":{}", trace.parent_id());
    }
    records += '}';
  }
  AddTimestamp(trace.id(), name, ns);
}

void TraceGroup::ReportFrontend(std::string_view name, uint64_t ns) {
  base::MutexLock lock(mutex_);
  if (is_kept_) recent_.Add(root_id_, name, ns);
  if (!is_telemetry()) return AddTimestamp(root_id_, name, ns);
  Spans& spans = spans_[root_id_];
  if (!spans.empty()) spans.front().events.push_back({std::string(name), ToUnix(ns)});
}

void TraceGroup::ReportTensor(const Trace& trace, TraceActivity activity,
                              const TensorView& tensor) {
  if (is_telemetry()) return;  // spans carry no tensors
  if (tensor.memory_type == TensorView::kGpu) return;
  const std::string data = DataText(tensor.type, tensor.bytes);
  base::MutexLock lock(mutex_);
  std::string& records = Records(trace.id());
  fmt::format_to(std::back_inserter(records),
                 "{{\"id\":{},\"activity\":\"{}\",\"tensor\":{{\"name\":", trace.id(),
                 TraceActivityName(activity));
  AppendString(records, tensor.name);
  records += ",\"data\":";
  AppendString(records, data);
  fmt::format_to(std::back_inserter(records), ",\"shape\":\"{}\",\"dtype\":\"{}\"}}}}",
                 fmt::join(tensor.shape, ","), tensor::ProtocolName(tensor.type));
}

Span TraceGroup::NewSpan(std::string_view name, uint64_t ns, const SpanContext* parent) const {
  Span span;
  span.name = name;
  span.context = identity_;
  span.context.span_id = RandomSpanId();
  if (parent != nullptr) span.parent = parent->span_id;
  span.start_unix_ns = ToUnix(ns);
  return span;
}

void TraceGroup::EndSpan(Spans& spans, uint64_t ns) {
  spans.back().end_unix_ns = ToUnix(ns);
  sampler_->output().exporter->Add(std::move(spans.back()));
  spans.pop_back();
}

void TraceGroup::AddSpanEvent(Trace& trace, TraceActivity activity, std::string_view name,
                              uint64_t ns) {
  constexpr std::string_view kStart = "_START";
  constexpr std::string_view kEnd = "_END";
  const bool is_custom = activity == TraceActivity::kCustom;
  const bool is_request = activity == TraceActivity::kRequestStart;
  Spans& spans = spans_[trace.id()];
  if (is_request || activity == TraceActivity::kComputeStart ||
      (is_custom && name.size() > kStart.size() && name.ends_with(kStart))) {
    // A request's span lies within its parent's, or within the root; other spans lie within the
    // request's.
    const Spans& around = is_request && trace.parent_id() != 0 ? spans_[trace.parent_id()] : spans;
    const std::string_view span_name = is_request  ? std::string_view(trace.model())
                                       : is_custom ? name.substr(0, name.size() - kStart.size())
                                                   : std::string_view("compute");
    Span span = NewSpan(span_name, ns, around.empty() ? nullptr : &around.back().context);
    if (is_request) {
      span.attributes = {{"triton.model_name", trace.model()},
                         {"triton.model_version", trace.version()},
                         {"triton.trace_id", static_cast<int64_t>(trace.id())},
                         {"triton.trace_parent_id", static_cast<int64_t>(trace.parent_id())}};
      if (!trace.request_id().empty()) {
        span.attributes.emplace_back("triton.request_id", trace.request_id());
      }
      std::string context = "{\"traceparent\":\"" + FormatTraceParent(span.context) + '"';
      if (!span.context.state.empty()) {
        context += ",\"tracestate\":";
        AppendString(context, span.context.state);
      }
      trace.SetContext(context + '}');
    }
    spans.push_back(std::move(span));
  }
  if (spans.empty()) return;
  spans.back().events.push_back({std::string(name), ToUnix(ns)});
  if (activity == TraceActivity::kRequestEnd || activity == TraceActivity::kComputeEnd ||
      (is_custom && name.size() > kEnd.size() && name.ends_with(kEnd))) {
    EndSpan(spans, ns);
  }
}

}  // namespace nereid::observe
