// SPDX-License-Identifier: Apache-2.0
// What `nereid tune` has found, for people and programs.
#pragma once

#include <functional>
#include <string>

#include <rapidjson/document.h>

#include "cli/tune_search.h"

namespace nereid::cli {

// A finished search.
struct TuneResult {
  std::string model;
  double goal_us = 0;
  double seconds = 0;
  size_t space = 0;  // the number of all choices
  TuneOutcome outcome;
  std::string text;   // of the best configuration
  std::string patch;  // from the present configuration to the best; empty: they are the same
  std::function<std::string(const TuneChoice&)> describe;
};

// "1234 requests/s, p99 12.3 ms with 8 in flight".
std::string ScoreText(const TuneScore& score);

// Returns a few sentences: whether the goal is met, and what to do.
std::string TuneVerdict(const TuneResult& result);

rapidjson::Document TuneJson(const TuneResult& result);

// Returns a page of HTML with a plot of all trials.
std::string TuneReport(const TuneResult& result);

}  // namespace nereid::cli
