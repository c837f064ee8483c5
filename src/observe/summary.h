// SPDX-License-Identifier: Apache-2.0
// Quantiles of the values of the last minute, with a permitted error for each.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "observe/metrics_page.h"

namespace nereid::observe {

// A quantile to be estimated and the error that it may have; both are shares from 0 to 1.
struct QuantileError {
  double quantile = 0;
  double error = 0;
};

// The content of an option with a list of quantiles.
struct Quantiles {
  std::vector<QuantileError> list;
  std::vector<std::string> invalid;  // entries that were ignored
};
// Parses "<quantile>:<error>,...".
Quantiles ParseQuantiles(std::string_view text);

// The values of one summary. Thread-safe. Observing takes a lock, so summaries are collected only
// if they are enabled.
class Summary {
 public:
  explicit Summary(const std::vector<QuantileError>& quantiles);
  ~Summary();

  void Observe(double value);
  SummaryValue Read() const;

 private:
  struct Body;
  const std::unique_ptr<Body> body_;
};

}  // namespace nereid::observe
