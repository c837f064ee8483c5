// SPDX-License-Identifier: Apache-2.0
// Measures a server under several levels of load. Confined to one thread.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_result.h"
#include "cli/server_client.h"
#include "cli/values.h"
#include "loadgen/load.h"

namespace nereid::cli {

// A level of load.
struct BenchLevel {
  bool is_open = false;
  double load = 1;  // requests in flight, or, in an open loop, a second
};

// How each level is measured: in rounds, in each of which all levels have their turn, so that a
// machine that becomes slower or faster meanwhile does so for all levels.
struct BenchPlan {
  std::vector<BenchLevel> levels;
  int rounds = 1;
  Seconds warmup{0};      // of each round
  Seconds duration{0};    // of all rounds of a level together
  uint64_t requests = 0;  // likewise; 0: the duration decides
  Seconds timeout{0};     // of a request; 0: none
  size_t threads = 1;
  size_t max_in_flight = 1;  // of an open loop
  loadgen::Distribution distribution = loadgen::Distribution::kPoisson;
};

// What is measured, and who wants to know.
struct BenchSubject {
  const loadgen::Target& target;
  const std::vector<std::string>& requests;
  std::string model;
  std::string version;       // empty: that which the server chooses
  ServerClient* statistics;  // asked for the statistics of the model; null: nobody is
  // Called every tenth of a second with the share that is done; may be empty.
  std::function<void(double share, std::string_view level)> on_progress;
  std::stop_token stop;
};

// Returns the results of the levels, in order. UNAVAILABLE if the server goes away meanwhile,
// CANCELLED if `stop` stops.
base::Result<std::vector<LevelResult>> MeasureLevels(const BenchSubject& subject,
                                                     const BenchPlan& plan);

// Sends one request. The error is the server's, or UNAVAILABLE.
base::Status TryRequest(const BenchSubject& subject, Seconds timeout);

}  // namespace nereid::cli
