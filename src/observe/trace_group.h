// SPDX-License-Identifier: Apache-2.0
// All traces of one sampled request during recording. Private to this module.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "observe/recent_traces.h"
#include "observe/trace.h"
#include "observe/trace_output.h"
#include "observe/trace_sampler.h"

namespace nereid::observe {

// Records the traces of a request. Thread-safe. The destructor passes on the records.
class TraceGroup final : public TraceRecorder {
 public:
  TraceGroup(std::shared_ptr<TraceSampler> sampler, std::optional<SpanContext> remote);
  ~TraceGroup() override;

  uint32_t levels() const override { return sampler_->settings().levels; }
  uint64_t NextId() override { return sampler_->output().NextId(); }
  void SetRoot(uint64_t id);

  void Report(Trace& trace, TraceActivity activity, std::string_view name, uint64_t ns) override;
  void ReportFrontend(std::string_view name, uint64_t ns) override;
  void ReportTensor(const Trace& trace, TraceActivity activity, const TensorView& tensor) override;

 private:
  using Spans = std::vector<Span>;  // unfinished spans, the innermost last

  bool is_telemetry() const { return sampler_->mode() == TraceMode::kOpenTelemetry; }
  void Pass() NEREID_REQUIRES(mutex_);
  // Returns the records of a trace, with a comma after existing ones.
  std::string& Records(uint64_t id) NEREID_REQUIRES(mutex_);
  void AddTimestamp(uint64_t id, std::string_view name, uint64_t ns) NEREID_REQUIRES(mutex_);
  void AddSpanEvent(Trace& trace, TraceActivity activity, std::string_view name, uint64_t ns)
      NEREID_REQUIRES(mutex_);
  Span NewSpan(std::string_view name, uint64_t ns, const SpanContext* parent) const;
  void EndSpan(Spans& spans, uint64_t ns) NEREID_REQUIRES(mutex_);
  uint64_t ToUnix(uint64_t ns) const { return ns + unix_offset_ns_; }

  const std::shared_ptr<TraceSampler> sampler_;
  const uint64_t unix_offset_ns_;
  SpanContext identity_;  // the trace id, flags and state that all spans share
  uint64_t root_id_ = 0;  // constant once set
  const bool is_kept_;    // whether recent_ gets what is reported
  base::Mutex mutex_;
  std::map<uint64_t, std::string> records_ NEREID_GUARDED_BY(mutex_);
  std::map<uint64_t, Spans> spans_ NEREID_GUARDED_BY(mutex_);
  RecentTraceBuilder recent_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::observe
