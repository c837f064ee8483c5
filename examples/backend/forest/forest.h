// SPDX-License-Identifier: Apache-2.0
// Decision forests in LightGBM's text format (save_model). This is the "framework" of the example:
// it is independent of inference servers, and backend.cc, which makes a backend of it, is
// independent of trees.
//
// Supports numeric splits with every treatment of missing values, and the objectives regression,
// binary and multiclass. Categorical splits and linear leaves are refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forest {

// A forest. Immutable, so any number of threads may predict with it.
class Forest {
 public:
  // Parses the text of a model file. Throws std::runtime_error, which names the error and the tree.
  // Every index is checked here, so that prediction needs no checks.
  static Forest Parse(std::string_view text);

  size_t feature_count() const { return feature_count_; }
  // The number of values of a prediction: the classes of a multiclass model, otherwise one.
  size_t output_count() const { return output_count_; }

  // Predicts one row. `features` has feature_count() values, where NaN is "missing"; `output` has
  // room for output_count(): probabilities, or the value of a regression.
  void Predict(std::span<const float> features, std::span<float> output) const;

 private:
  enum class Objective { kRegression, kBinary, kMulticlass };
  enum class Missing : uint8_t { kNone, kZero, kNan };

  // A split: goes left if the feature is at most the threshold. Children below zero are leaves:
  // ~child.
  struct Node {
    double threshold = 0;
    uint32_t feature = 0;
    int32_t left = 0;
    int32_t right = 0;
    Missing missing = Missing::kNone;
    bool missing_goes_left = false;
  };
  struct Tree {
    std::vector<Node> nodes;  // empty: a single leaf
    std::vector<double> leaves;

    double Predict(std::span<const float> features) const;
  };
  class Reader;

  size_t feature_count_ = 0;
  size_t output_count_ = 1;
  Objective objective_ = Objective::kRegression;
  double sigmoid_ = 1;
  std::vector<Tree> trees_;  // for each iteration, one for each output
};

}  // namespace forest
