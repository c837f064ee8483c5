// SPDX-License-Identifier: Apache-2.0
// The model that `nereid tune` measures: copies of its configuration with other settings, each
// served by a server of its own in a process of its own.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "check/model_view.h"
#include "cli/bench_request.h"
#include "cli/child_server.h"
#include "cli/tune_search.h"

namespace nereid::cli {

// What counts as a good configuration, and how it is measured.
struct TuneGoal {
  double p99_us = 0;
  int max_concurrency = 256;
  bool uses_grpc = false;
  BenchInputs inputs;
  Seconds timeout{10};
  Seconds level{0.3};  // the time of one level of load with effort 1
};

// Confined to one thread.
class TunedModel {
 public:
  // Makes a repository of links to the files of the model. `model` outlives this.
  static base::Result<std::unique_ptr<TunedModel>> Create(const check::ModelView& model,
                                                          const TuneGoal& goal,
                                                          std::stop_token stop);

  // Serves the model as it is and reads what may be varied on this machine. UNSUPPORTED for models
  // for which nothing here makes sense, such as ensembles.
  base::Result<TuneSpace> ReadSpace();

  // Measures the most requests a second for which the goal is met. REQUIRES: ReadSpace succeeded.
  TuneScore Measure(const TuneChoice& choice, double effort, double concurrency);

  // The text of the configuration with a choice. REQUIRES: as for Measure.
  std::string TextWith(const TuneChoice& choice) const;
  // "2 instances, 1 thread, batches of 8, 100 us".
  std::string Describe(const TuneChoice& choice) const;

 private:
  TunedModel(const check::ModelView& model, const TuneGoal& goal, std::stop_token stop,
             base::TemporaryFolder folder)
      : model_(model), goal_(goal), stop_(std::move(stop)), folder_(std::move(folder)) {}

  std::string ModelFolder() const { return folder_.path + "/" + model_.name; }
  base::Status MakeLinks();
  base::Result<std::unique_ptr<ChildServer>> Serve(const TuneChoice& choice);
  BenchAddress AddressOf(const ChildServer& server) const;

  const check::ModelView& model_;
  const TuneGoal& goal_;
  const std::stop_token stop_;
  const base::TemporaryFolder folder_;
  std::vector<std::string> requests_;
  TuneChoice present_;            // what the configuration says, as completed
  std::string thread_parameter_;  // of the model's backend; empty: it has none
};

// A number of requests in flight under which one configuration was measured.
struct TuneLevel {
  double rate = 0;
  double p99_us = 0;
  std::string failure;
};

// Finds the number of requests in flight, up to `limit`, with which the rate is highest and p99
// within the goal. Begins at `begin` (0: at 1), and so measures few levels if that is near.
TuneScore FindConcurrency(double goal_us, double begin, double limit,
                          const std::function<TuneLevel(double concurrency)>& measure);

}  // namespace nereid::cli
