// SPDX-License-Identifier: Apache-2.0
// The search of `nereid tune`: which configurations are tried, how long each is measured, and which
// one wins. Knows neither servers nor clocks: measuring is a function that the caller hands over.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace nereid::cli {

// What is varied. 0 stands for what the configuration says now, or for nothing where it says
// nothing.
struct TuneChoice {
  int instances = 0;
  int threads = 0;    // of the framework, for one operator
  int max_batch = 0;  // max_batch_size
  int delay_us = -1;  // of dynamic batching; -1: as now, which may be no dynamic batching

  auto operator<=>(const TuneChoice&) const = default;
};

// The values that may be chosen, each list in rising order. An empty list: this is not varied.
struct TuneSpace {
  std::vector<int> instances;
  std::vector<int> threads;
  std::vector<int> max_batches;
  std::vector<int> delays_us;

  // The number of all choices.
  size_t size() const;
  std::vector<TuneChoice> All() const;
};

// What a measurement of a choice has found.
struct TuneScore {
  bool meets = false;      // whether the goal was met with some number of requests in flight
  double rate = 0;         // the most requests a second while it was; or, if not, with the fewest
  double p99_us = 0;       // at that rate
  double concurrency = 0;  // the requests in flight at that rate
  std::string failure;     // why nothing could be measured; empty if it could
};

// Whether `a` is better than `b`: the goal first, then the rate; without the goal, the latency.
bool IsBetter(const TuneScore& a, const TuneScore& b);

// One measurement.
struct TuneTrial {
  TuneChoice choice;
  TuneScore score;
  int stage = 0;
};

// What the search needs from the world.
struct TuneWorld {
  // Measures a choice. `effort` is how thoroughly: 1 to tell good from bad, larger to tell good
  // from better. `concurrency` is a number of requests in flight at which to begin.
  std::function<TuneScore(const TuneChoice& choice, double effort, double concurrency)> measure;
  // The share of the budget that is left, from 1 to 0 and below. The search ends when nothing is.
  std::function<double()> left;
  // Told of each trial; may be empty.
  std::function<void(const TuneTrial&)> on_trial;
};

struct TuneOutcome {
  std::vector<TuneTrial> trials;  // in order
  // The winner, and the present configuration, measured side by side at last.
  TuneTrial best;
  TuneTrial present;
  // Whether the winner is better than the present configuration by more than the repeats of these
  // two differ among themselves.
  bool is_certain = false;
};

// The search: a few starting points across the space; from the best two, one setting after the
// other is moved up and down as long as that helps; finally the best three and the present
// configuration are measured in turns, longer and several times, and the medians decide. The
// present configuration is trial number one.
TuneOutcome SearchChoices(const TuneSpace& space, const TuneWorld& world);

}  // namespace nereid::cli
