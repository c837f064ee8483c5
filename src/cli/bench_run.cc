// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_run.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "cli/json.h"
#include "cli/model_numbers.h"

namespace nereid::cli {
namespace {

using base::nanoseconds;

// The samples of each round: enough for an estimate of their spread, and each long enough for
// quantiles.
constexpr size_t kIntervals = 4;
// In a measurement of a number of requests, whose time is not known beforehand.
constexpr nanoseconds kShortInterval = std::chrono::milliseconds(50);
constexpr Seconds kNoTimeout{12 * 3600};

nanoseconds Nanoseconds(Seconds time) { return std::chrono::duration_cast<nanoseconds>(time); }

// Returns the statistics of all versions that a request may go to; none if the server does not
// tell.
std::vector<ModelNumbers> ReadNumbers(const BenchSubject& subject) {
  if (subject.statistics == nullptr) return {};
  const auto document =
      subject.statistics->GetJson(ModelPath(subject.model, subject.version, "/stats"));
  if (!document.ok()) return {};
  return ReadModelNumbers(*document);
}

// Returns what happened between two readings to the version that requests went to last.
std::optional<ModelNumbers> Between(const std::vector<ModelNumbers>& before,
                                    const std::vector<ModelNumbers>& after) {
  const auto now = std::ranges::max_element(after, {}, &ModelNumbers::last_inference_ms);
  if (now == after.end()) return std::nullopt;
  const auto then = std::ranges::find(before, now->version, &ModelNumbers::version);
  if (then == before.end()) return std::nullopt;
  return Since(*then, *now);
}

// Collects the rounds of a level.
class LevelMeasurement {
 public:
  explicit LevelMeasurement(const BenchLevel& level) {
    result_.is_open = level.is_open;
    result_.load = level.load;
  }

  void Add(const loadgen::LoadResult& load, const loadgen::LoadPlan& plan);
  void AddNumbers(const ModelNumbers& numbers);
  LevelResult Finish();

 private:
  // Adds neighbouring intervals until there are kIntervals of them, or as many as there are.
  static std::vector<loadgen::Interval> Regroup(const std::vector<loadgen::Interval>& intervals,
                                                size_t& each);
  void AddInterval(const loadgen::Interval& interval, double seconds);
  Estimate QuantileOf(size_t index) const;

  LevelResult result_;
  uint64_t ended_in_time_ = 0;  // requests that succeeded while it was measured
  loadgen::Histogram latencies_;
  std::vector<double> rates_;
  std::vector<std::vector<double>> quantiles_{std::size(kBenchQuantiles)};
  std::vector<size_t> rate_rounds_;      // samples of each round
  std::vector<size_t> quantile_rounds_;  // likewise; fewer, if nothing ended in an interval
  std::optional<ModelNumbers> numbers_;
};

std::vector<loadgen::Interval> LevelMeasurement::Regroup(
    const std::vector<loadgen::Interval>& intervals, size_t& each) {
  each = std::max<size_t>(intervals.size() / kIntervals, 1);
  std::vector<loadgen::Interval> groups;
  for (size_t i = 0; i + each <= intervals.size() && groups.size() < kIntervals; i += each) {
    loadgen::Interval& group = groups.emplace_back();
    for (size_t k = i; k < i + each; ++k) {
      group.succeeded += intervals[k].succeeded;
      group.latencies.Add(intervals[k].latencies);
    }
  }
  return groups;
}

void LevelMeasurement::AddInterval(const loadgen::Interval& interval, double seconds) {
  BenchMoment moment{.round = static_cast<int>(rate_rounds_.size()),
                     .rate = static_cast<double>(interval.succeeded) / seconds};
  rates_.push_back(moment.rate);
  ++rate_rounds_.back();
  if (interval.latencies.count() > 0) {
    for (size_t i = 0; i < quantiles_.size(); ++i) {
      quantiles_[i].push_back(interval.latencies.QuantileNs(kBenchQuantiles[i].share) / 1e3);
    }
    ++quantile_rounds_.back();
    moment.p50_us = quantiles_[kP50].back();
    moment.p99_us = quantiles_[kP99].back();
  }
  result_.moments.push_back(moment);
}

// Returns how long the requests took. The time of so many requests of an open loop ends with the
// last one, but the pause after it belongs to the rate as well: five requests at ten a second take
// half a second.
double SecondsOf(const loadgen::LoadResult& load, const loadgen::LoadPlan& plan) {
  if (plan.requests == 0 || plan.rate <= 0) return load.seconds;
  return std::max(load.seconds, static_cast<double>(plan.requests) / plan.rate);
}

void LevelMeasurement::Add(const loadgen::LoadResult& load, const loadgen::LoadPlan& plan) {
  const loadgen::Recorder& measured = load.measured;
  const double seconds = SecondsOf(load, plan);
  result_.seconds += seconds;
  result_.unfinished += measured.unfinished();
  result_.busy = std::max(result_.busy, load.busy);
  for (const auto& [text, count] : measured.errors()) result_.errors[text] += count;
  for (const loadgen::Interval& one : measured.intervals()) {
    ended_in_time_ += one.succeeded;
    // In an open loop, those that were due in this time, whenever they ended.
    result_.succeeded += result_.is_open ? one.latencies.count() : one.succeeded;
    latencies_.Add(one.latencies);
  }
  if (result_.is_open) result_.succeeded -= measured.unfinished();
  rate_rounds_.push_back(0);
  quantile_rounds_.push_back(0);
  std::vector<loadgen::Interval> intervals = measured.intervals();
  size_t each = 1;
  if (plan.requests == 0) {
    // Intervals at the end in which nothing happened belong to the time as well.
    intervals.resize(kIntervals);
  } else {
    // The last one is not over.
    if (intervals.size() > 1) intervals.pop_back();
    intervals = Regroup(intervals, each);
  }
  for (const loadgen::Interval& one : intervals) {
    const Seconds whole = plan.interval * each;
    AddInterval(one, intervals.size() == 1 ? std::min(whole.count(), seconds) : whole.count());
  }
}

void LevelMeasurement::AddNumbers(const ModelNumbers& numbers) {
  if (!numbers_) {
    numbers_ = numbers;
    return;
  }
  const auto add = [](DurationSum& sum, const DurationSum& other) {
    sum.count += other.count;
    sum.ns += other.ns;
  };
  numbers_->inference_count += numbers.inference_count;
  numbers_->execution_count += numbers.execution_count;
  add(numbers_->queue, numbers.queue);
  add(numbers_->compute_input, numbers.compute_input);
  add(numbers_->compute_infer, numbers.compute_infer);
  add(numbers_->compute_output, numbers.compute_output);
  add(numbers_->cache_hit, numbers.cache_hit);
}

Estimate LevelMeasurement::QuantileOf(size_t index) const {
  Estimate estimate = EstimateOf(quantiles_[index], quantile_rounds_);
  // That of all requests together is what was asked for; the samples tell how far to trust it.
  estimate.value = latencies_.QuantileNs(kBenchQuantiles[index].share) / 1e3;
  return estimate;
}

LevelResult LevelMeasurement::Finish() {
  result_.rate = EstimateOf(rates_, rate_rounds_);
  if (result_.seconds > 0) {
    result_.rate.value = static_cast<double>(ended_in_time_) / result_.seconds;
  }
  for (size_t i = 0; i < quantiles_.size(); ++i) result_.quantiles_us.push_back(QuantileOf(i));
  result_.mean_us = latencies_.mean_ns() / 1e3;
  result_.max_us = static_cast<double>(latencies_.max_ns()) / 1e3;
  if (numbers_ && numbers_->execution_count > 0) {
    result_.server = ServerShare{.queue_us = numbers_->queue.mean_ns() / 1e3,
                                 .compute_us = numbers_->mean_compute_ns() / 1e3,
                                 .batch = numbers_->mean_batch(),
                                 .executions = numbers_->execution_count,
                                 .cache_hits = numbers_->cache_hit.count};
  }
  return std::move(result_);
}

loadgen::LoadPlan PlanOf(const BenchLevel& level, const BenchPlan& plan) {
  loadgen::LoadPlan load;
  load.calls = level.is_open ? plan.max_in_flight : static_cast<size_t>(level.load);
  load.rate = level.is_open ? level.load : 0;
  load.distribution = plan.distribution;
  load.warmup = Nanoseconds(plan.warmup);
  load.duration = Nanoseconds(plan.duration) / plan.rounds;
  const auto rounds = static_cast<uint64_t>(plan.rounds);
  load.requests = (plan.requests + rounds - 1) / rounds;
  load.interval = load.requests != 0
                      ? kShortInterval
                      : nanoseconds(load.duration.count() / static_cast<int64_t>(kIntervals) + 1);
  load.timeout = Nanoseconds(plan.timeout.count() > 0 ? plan.timeout : kNoTimeout);
  load.threads = std::clamp<size_t>(plan.threads, 1, load.calls);
  return load;
}

}  // namespace

base::Result<std::vector<LevelResult>> MeasureLevels(const BenchSubject& subject,
                                                     const BenchPlan& plan) {
  std::vector<LevelMeasurement> measurements(plan.levels.begin(), plan.levels.end());
  const double all = static_cast<double>(plan.levels.size()) * plan.rounds;
  double done = 0;
  for (int round = 0; round < plan.rounds; ++round) {
    for (size_t i = 0; i < plan.levels.size(); ++i, ++done) {
      const loadgen::LoadPlan load = PlanOf(plan.levels[i], plan);
      const std::string title =
          LevelResult{.is_open = plan.levels[i].is_open, .load = plan.levels[i].load}.Title();
      std::vector<ModelNumbers> before;
      std::vector<ModelNumbers> after;
      loadgen::LoadHooks hooks;
      // A number of requests may be over before anybody notices that the warm-up is. It counts
      // then.
      if (load.requests != 0) before = ReadNumbers(subject);
      if (load.requests == 0) hooks.on_measuring = [&] { before = ReadNumbers(subject); };
      hooks.on_measured = [&] { after = ReadNumbers(subject); };
      hooks.on_progress = [&](double share) {
        if (subject.on_progress) subject.on_progress((done + share) / all, title);
      };
      hooks.stop = subject.stop;
      const loadgen::LoadResult result = RunLoad(subject.target, subject.requests, load, hooks);
      NEREID_RETURN_IF_ERROR(result.status);
      measurements[i].Add(result, load);
      if (const auto numbers = Between(before, after)) measurements[i].AddNumbers(*numbers);
    }
  }
  std::vector<LevelResult> results;
  for (LevelMeasurement& measurement : measurements) results.push_back(measurement.Finish());
  return results;
}

base::Status TryRequest(const BenchSubject& subject, Seconds timeout) {
  BenchPlan plan;
  plan.levels = {{.is_open = false, .load = 1}};
  plan.requests = 1;
  plan.timeout = timeout;
  BenchSubject quiet = subject;
  quiet.on_progress = nullptr;
  quiet.statistics = nullptr;
  NEREID_ASSIGN_OR_RETURN(const std::vector<LevelResult> results, MeasureLevels(quiet, plan));
  const std::map<std::string, uint64_t>& errors = results.front().errors;
  if (errors.empty()) return base::OkStatus();
  return {base::StatusCode::kUnknown, errors.begin()->first};
}

}  // namespace nereid::cli
