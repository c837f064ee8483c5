// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace nereid::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A smaller difference is of no use to anybody, even if it is certain.
constexpr double kMinChange = 0.01;

double MeanOf(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns the standard error of the mean. REQUIRES: at least two values.
double StandardError(std::span<const double> values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return std::sqrt(sum / (count - 1) / count);
}

// Returns the larger standard error of those between samples and between rounds.
double StandardErrorOf(const Estimate& estimate) {
  if (estimate.samples.size() < 2) return kInfinity;
  const double between_samples = StandardError(estimate.samples);
  if (estimate.rounds.size() < 2) return between_samples;
  return std::max(between_samples, StandardError(estimate.rounds));
}

double DegreesOf(const Estimate& estimate) {
  return static_cast<double>(estimate.samples.size() - 1);
}

}  // namespace

// The expansion of Cornish and Fisher around the normal distribution (Abramowitz and Stegun,
// 26.7.5), exact within 2 % from two degrees on; below, the values are those of tables.
double StudentFactor(double confidence, double degrees) {
  const bool is_wide = confidence > 0.97;
  if (degrees < 2) return is_wide ? 63.66 : 12.71;
  if (degrees < 3) return is_wide ? 9.925 : 4.303;
  const double z = is_wide ? 2.5758 : 1.9600;
  const double z3 = std::pow(z, 3);
  const double z5 = std::pow(z, 5);
  const double z7 = std::pow(z, 7);
  return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * std::pow(degrees, 3));
}

Estimate EstimateOf(std::vector<double> samples, const std::vector<size_t>& rounds) {
  Estimate estimate;
  if (samples.empty()) {
    estimate.margin = kInfinity;
    return estimate;
  }
  estimate.samples = std::move(samples);
  estimate.value = MeanOf(estimate.samples);
  std::span<const double> rest = estimate.samples;
  for (const size_t count : rounds) {
    if (count > 0 && rounds.size() > 1) estimate.rounds.push_back(MeanOf(rest.first(count)));
    rest = rest.subspan(count);
  }
  estimate.margin = estimate.samples.size() < 2
                        ? kInfinity
                        : StudentFactor(0.95, DegreesOf(estimate)) * StandardErrorOf(estimate);
  return estimate;
}

Difference Compare(const Estimate& before, const Estimate& after) {
  if (before.value <= 0 || before.samples.size() < 2 || after.samples.size() < 2) {
    return {.change = before.value > 0 ? after.value / before.value - 1 : 0, .margin = kInfinity};
  }
  const double a = std::pow(StandardErrorOf(before), 2);
  const double b = std::pow(StandardErrorOf(after), 2);
  // The degrees of freedom by Welch and Satterthwaite.
  const double spread = a * a / DegreesOf(before) + b * b / DegreesOf(after);
  const double degrees = spread > 0 ? (a + b) * (a + b) / spread : kInfinity;
  Difference difference{
      .change = after.value / before.value - 1,
      .margin = StudentFactor(0.99, std::min(degrees, 1e6)) * std::sqrt(a + b) / before.value};
  const double least = std::max(difference.margin, kMinChange);
  if (difference.change > least) difference.verdict = Verdict::kHigher;
  if (difference.change < -least) difference.verdict = Verdict::kLower;
  return difference;
}

}  // namespace nereid::cli
