// SPDX-License-Identifier: Apache-2.0
// What can be said about a quantity that was measured several times, and about the difference
// between two of them.
#pragma once

#include <cstddef>
#include <vector>

namespace nereid::cli {

// A quantity, and the interval in which its true value lies with a confidence of 95 %, as far as
// the samples tell. A value type.
struct Estimate {
  double value = 0;             // the mean of the samples, unless something better is known
  double margin = 0;            // half of that interval; infinite for fewer than two samples
  std::vector<double> samples;  // one for each interval of time, in order
  std::vector<double> rounds;   // the means of the rounds, if there were several

  double low() const { return value - margin; }
  double high() const { return value + margin; }
};

// Intervals that follow each other resemble each other, and so say less than as many independent
// ones. With several rounds, whose intervals are taken minutes apart, the standard error is
// therefore the larger of that between intervals and that between rounds. `rounds` are the numbers
// of samples in each round; their sum is the number of samples.
Estimate EstimateOf(std::vector<double> samples, const std::vector<size_t>& rounds);

// How sure we are about a difference.
enum class Verdict { kHigher, kLower, kNoise };

// The difference between two quantities, relative to the first.
struct Difference {
  double change = 0;  // 0.1: the second is 10 % higher
  double margin = 0;  // of `change`, with a confidence of 99 %
  Verdict verdict = Verdict::kNoise;
};

// Compares two estimates by Welch's method. A difference counts if its interval excludes zero, and
// if it is at least 1 %. A higher confidence than 95 %, because a comparison looks at many
// quantities at once. Without samples enough, all is noise.
Difference Compare(const Estimate& before, const Estimate& after);

// The factor for standard errors by Student's distribution, two-sided, for a confidence of 95 % or
// 99 %. `degrees` of freedom may be broken.
double StudentFactor(double confidence, double degrees);

}  // namespace nereid::cli
