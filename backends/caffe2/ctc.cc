// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/ctc.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace nereid::caffe2 {

namespace {

using Prefix = std::vector<int32_t>;

// The probability of a prefix, by how it ends.
struct Ending {
  float blank = 0.0F;
  float label = 0.0F;
  float sum() const { return blank + label; }
};

using Beams = std::map<Prefix, Ending>;

// Returns the prefixes in the order of their probability.
std::vector<Beams::const_iterator> Ranked(const Beams& beams) {
  std::vector<Beams::const_iterator> ranked;
  for (auto it = beams.begin(); it != beams.end(); ++it) {
    ranked.push_back(it);
  }
  // Scores may be no numbers at all, which have no order.
  const auto rank = [](Beams::const_iterator it) {
    const float sum = it->second.sum();
    return std::isnan(sum) ? -1.0F : sum;
  };
  std::sort(ranked.begin(), ranked.end(), [&rank](auto a, auto b) {
    return rank(a) != rank(b) ? rank(a) > rank(b) : a->first < b->first;
  });
  return ranked;
}

std::vector<int32_t> LabelsAbove(const float* row, size_t labels, float threshold) {
  std::vector<int32_t> above;
  for (size_t l = 0; l < labels; ++l) {
    if (row[l] > threshold) {
      above.push_back(static_cast<int32_t>(l));
    }
  }
  if (above.empty()) {
    above.resize(labels);
    std::iota(above.begin(), above.end(), 0);
  }
  return above;
}

// Adds to `next` what follows from `prefix` with one more row of scores. `all` are the prefixes of
// the time before, `kept` those among them from which the search goes on.
void Extend(const Prefix& prefix, const Beams& all, const Beams& kept, const float* row,
            const std::vector<int32_t>& labels, Beams* next) {
  const Ending& before = kept.at(prefix);
  for (const int32_t label : labels) {
    if (label == 0) {
      (*next)[prefix].blank += row[0] * before.sum();
      continue;
    }
    Prefix longer = prefix;
    longer.push_back(label);
    const bool repeats = !prefix.empty() && prefix.back() == label;
    (*next)[longer].label += row[label] * (repeats ? before.blank : before.sum());
    if (repeats) {
      (*next)[prefix].label += row[label] * before.label;
    }
    // A prefix that was dropped comes back with what it had.
    if (const auto dropped = all.find(longer); dropped != all.end() && !kept.contains(longer)) {
      (*next)[longer].blank += row[0] * dropped->second.sum();
      (*next)[longer].label += row[label] * dropped->second.label;
    }
  }
}

}  // namespace

void DecodeGreedily(const CtcScores& scores, bool merge_repeated, CtcResult* result) {
  const size_t before = result->labels.size();
  int64_t previous = 0;
  for (size_t t = 0; t < scores.times; ++t) {
    const float* const row = scores.At(t);
    const int64_t best = std::max_element(row, row + scores.labels) - row;
    if (best != 0 && !(merge_repeated && best == previous)) {
      result->labels.push_back(static_cast<int32_t>(best));
    }
    previous = best;
  }
  result->lengths.push_back(static_cast<int32_t>(result->labels.size() - before));
}

void SearchBeams(const CtcScores& scores, const CtcSearch& search, CtcResult* result) {
  Beams all{{Prefix(), {.blank = 1.0F, .label = 0.0F}}};
  Beams kept = all;
  for (size_t t = 0; t < scores.times; ++t) {
    const float* const row = scores.At(t);
    const std::vector<int32_t> labels = LabelsAbove(row, scores.labels, search.threshold);
    Beams next;
    for (const auto& [prefix, ending] : kept) {
      Extend(prefix, all, kept, row, labels, &next);
    }
    all = std::move(next);
    kept.clear();
    const auto ranked = Ranked(all);
    for (size_t i = 0; i < std::min(search.width, ranked.size()); ++i) {
      kept.insert(*ranked[i]);
    }
  }
  const auto ranked = Ranked(all);
  for (size_t i = 0; i < search.candidates; ++i) {
    const bool is_there = i < ranked.size();
    result->lengths.push_back(is_there ? static_cast<int32_t>(ranked[i]->first.size()) : 0);
    result->probabilities.push_back(is_there ? ranked[i]->second.sum() : 0.0F);
    if (is_there) {
      result->labels.insert(result->labels.end(), ranked[i]->first.begin(), ranked[i]->first.end());
    }
  }
}

}  // namespace nereid::caffe2
