// SPDX-License-Identifier: Apache-2.0
// The rules when a file is written follow Triton's server/src/tracer.cc, TraceSetting.
#include "observe/trace_sampler.h"

namespace nereid::observe {
namespace {

// The buffered bytes after which traces of unlimited number are appended to their single file.
constexpr size_t kWrittenBytes = size_t{1} << 20;

}  // namespace

TraceSampler::TraceSampler(const TraceSettings& settings, TraceMode mode,
                           std::shared_ptr<TraceOutput> output)
    : settings_(settings), mode_(mode), output_(std::move(output)), count_(settings.count) {}

TraceSampler::~TraceSampler() {
  base::MutexLock lock(mutex_);
  if (pending_count_ == 0) return;
  if (settings_.log_frequency != 0) {
    output_->file.WriteIndexed(std::move(pending_));
  } else {
    output_->file.Append(std::move(pending_));
  }
}

TraceSettings TraceSampler::settings() const {
  TraceSettings settings = settings_;
  base::MutexLock lock(mutex_);
  settings.count = count_;
  return settings;
}

const char* TraceSampler::WhyInvalid() const {
  if (settings_.levels == kTraceOff) return "tracing is disabled";
  if (settings_.rate == 0) return "sample rate must be non-zero";
  if (mode_ == TraceMode::kTriton && output_->file.path().empty()) {
    return "trace file name is not given";
  }
  return "";
}

bool TraceSampler::is_on() const {
  if (settings_.levels == kTraceOff) return false;
  // A client may request a trace whatever the rate is.
  return mode_ == TraceMode::kOpenTelemetry || *WhyInvalid() == '\0';
}

bool TraceSampler::Sample(bool is_forced) {
  if (!is_on()) return false;
  if (settings_.rate == 0) return is_forced;
  base::MutexLock lock(mutex_);
  if (count_ == 0 && !is_forced) return false;
  bool is_hit = ++seen_ % settings_.rate == 0;
  if (is_hit && count_ > 0) {
    --count_;
  } else if (is_hit && count_ == 0) {
    is_hit = false;
  }
  if (!is_hit && !is_forced) return false;
  ++sampled_;
  return true;
}

void TraceSampler::Collect(std::string_view records) {
  base::MutexLock lock(mutex_);
  ++collected_;
  if (records.empty()) return;
  if (pending_count_ > 0) pending_ += ',';
  pending_ += records;
  ++pending_count_;
  const bool is_last = count_ == 0 && collected_ == sampled_;
  const bool is_full = settings_.log_frequency != 0 && pending_count_ >= settings_.log_frequency;
  if (is_last || is_full) {
    output_->file.WriteIndexed(std::exchange(pending_, {}));
    pending_count_ = 0;
  } else if (settings_.log_frequency == 0 && count_ < 0 && pending_.size() >= kWrittenBytes) {
    output_->file.Append(std::exchange(pending_, {}));
    pending_count_ = 0;
  }
}

}  // namespace nereid::observe
