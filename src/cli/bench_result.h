// SPDX-License-Identifier: Apache-2.0
// What `nereid bench` has measured, and the file in which it is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rapidjson/document.h>

#include "base/status.h"
#include "cli/bench_statistics.h"

namespace nereid::cli {

// A quantile that results have, as a share and by its name.
struct BenchQuantile {
  double share;
  std::string_view name;
};
inline constexpr BenchQuantile kBenchQuantiles[] = {
    {0.5, "p50"}, {0.9, "p90"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p99.9"}};
inline constexpr size_t kP50 = 0;
inline constexpr size_t kP99 = 3;

// What the statistics of the server say about the time of a measurement.
struct ServerShare {
  double queue_us = 0;    // a request's time in the queue, on average
  double compute_us = 0;  // an execution's time
  double batch = 0;       // inferences in an execution
  uint64_t executions = 0;
  uint64_t cache_hits = 0;
};

// An interval of a measurement.
struct BenchMoment {
  int round = 0;
  double rate = 0;    // requests that succeeded, a second
  double p50_us = 0;  // 0 if there were none
  double p99_us = 0;
};

// One level of load: so many requests in flight, or so many a second.
struct LevelResult {
  bool is_open = false;
  double load = 0;  // requests in flight, or, in an open loop, a second
  double seconds = 0;
  uint64_t succeeded = 0;
  std::map<std::string, uint64_t> errors;  // how many requests failed, by text
  uint64_t unfinished = 0;                 // of an open loop: too late even after the end
  Estimate rate;                           // requests that succeeded, a second
  double mean_us = 0;
  double max_us = 0;
  std::vector<Estimate> quantiles_us;  // as kBenchQuantiles
  std::optional<ServerShare> server;
  double busy = 0;  // the share of its time that the load generator's busiest thread was working
  std::vector<BenchMoment> moments;

  uint64_t failed() const;
  // "concurrency 16", "500 requests/s".
  std::string Title() const;
};

// A run of the command. The texts are for people.
struct BenchResult {
  std::string model;
  std::string version;  // empty: the server's choice
  std::string protocol;
  std::string server;  // its name and version
  std::string url;
  std::string started;  // a time in UTC
  std::string machine;
  std::string inputs;
  int64_t batch_size = 1;
  std::string distribution;  // of an open loop; else empty
  std::vector<LevelResult> levels;

  uint64_t failed() const;
};

rapidjson::Document BenchJson(const BenchResult& result);
// INVALID_ARGUMENT if the document is no result of this command.
base::Result<BenchResult> ReadBenchJson(const rapidjson::Value& document);

// A level of two runs.
struct LevelComparison {
  const LevelResult* before;
  const LevelResult* after;
  Difference rate;
  Difference p50;
  Difference p99;
};

// Compares the levels that both have. The results outlive the list.
std::vector<LevelComparison> CompareResults(const BenchResult& before, const BenchResult& after);

// Returns one sentence that says whether the second is better, and what else differs between the
// runs and so might be the reason.
std::string VerdictOf(const BenchResult& before, const BenchResult& after,
                      const std::vector<LevelComparison>& levels);

}  // namespace nereid::cli
