// SPDX-License-Identifier: Apache-2.0
// Reads labels from the scores of a network for sequences (connectionist temporal classification):
// at each time one label or none (label 0), repetitions counting once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nereid::caffe2 {

// The scores of one sequence: a row of `labels` scores for each time.
struct CtcScores {
  const float* first = nullptr;
  size_t times = 0;
  size_t stride = 0;  // from a row to the next
  size_t labels = 0;

  const float* At(size_t time) const { return first + time * stride; }
};

// How to search.
struct CtcSearch {
  size_t width = 10;       // prefixes that are kept at each time
  size_t candidates = 1;   // sequences that are returned
  float threshold = 0.0F;  // labels that score less are left out, unless all do
};

// Sequences of labels one after another, with the length of each.
struct CtcResult {
  std::vector<int32_t> lengths;
  std::vector<int32_t> labels;
  std::vector<float> probabilities;  // of the sequences that SearchBeams found
};

// Takes the best label of each time and adds the sequence to `result`.
void DecodeGreedily(const CtcScores& scores, bool merge_repeated, CtcResult* result);
// Searches for the most probable sequences and adds them to `result`.
void SearchBeams(const CtcScores& scores, const CtcSearch& search, CtcResult* result);

}  // namespace nereid::caffe2
