// SPDX-License-Identifier: Apache-2.0
#include "forest.h"

#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>

namespace forest {
namespace {

constexpr double kZero = 1e-35;  // LightGBM treats smaller values as zero

// One "key=value" section of the file: its head, or a tree.
using Section = std::map<std::string_view, std::string_view>;

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  return line;
}

template <typename Number>
Number ToNumber(std::string_view text, std::string_view key) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error(std::string(key) + " is not a number: '" + std::string(text) + "'");
  }
  return number;
}

}  // namespace

class Forest::Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Forest Read() {
    if (TakeLine(text_) != "tree") {
      throw std::runtime_error("not a LightGBM model: the first line is not 'tree'");
    }
    ReadHead(NextSection());
    for (Section tree = NextSection(); tree.contains("Tree"); tree = NextSection()) {
      try {
        forest_.trees_.push_back(ReadTree(tree));
      } catch (const std::runtime_error& e) {
        throw std::runtime_error("tree " + std::to_string(forest_.trees_.size()) + ": " + e.what());
      }
    }
    if (!is_complete_ || forest_.trees_.empty() ||
        forest_.trees_.size() % forest_.output_count_ != 0) {
      throw std::runtime_error("the model is incomplete: it ends after tree " +
                               std::to_string(forest_.trees_.size()));
    }
    return std::move(forest_);
  }

 private:
  // Reads lines up to the next empty one, skipping leading empty ones. Returns nothing at "end of
  // trees".
  Section NextSection() {
    Section section;
    while (!text_.empty()) {
      const std::string_view line = TakeLine(text_);
      if (line == "end of trees") {
        is_complete_ = true;
        text_ = {};
      } else if (line.empty()) {
        if (!section.empty()) {
          break;
        }
      } else {
        const size_t equals = line.find('=');
        section[line.substr(0, equals)] =
            equals == std::string_view::npos ? std::string_view() : line.substr(equals + 1);
      }
    }
    return section;
  }

  static std::string_view Get(const Section& section, std::string_view key) {
    const auto found = section.find(key);
    if (found == section.end()) {
      throw std::runtime_error("'" + std::string(key) + "' is missing");
    }
    return found->second;
  }

  // Parses a list of exactly `count` numbers.
  template <typename Number>
  static std::vector<Number> Numbers(const Section& section, std::string_view key, size_t count) {
    std::string_view text = Get(section, key);
    std::vector<Number> numbers;
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size());
      numbers.push_back(ToNumber<Number>(text.substr(0, end), key));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (numbers.size() != count) {
      throw std::runtime_error(std::string(key) + " has " + std::to_string(numbers.size()) +
                               " values, expected " + std::to_string(count));
    }
    return numbers;
  }

  void ReadHead(const Section& head) {
    constexpr uint32_t kMax = 1u << 20;
    const auto last_feature = ToNumber<uint32_t>(Get(head, "max_feature_idx"), "max_feature_idx");
    const auto outputs =
        ToNumber<uint32_t>(Get(head, "num_tree_per_iteration"), "num_tree_per_iteration");
    if (last_feature >= kMax || outputs == 0 || outputs >= kMax) {
      throw std::runtime_error("max_feature_idx or num_tree_per_iteration is out of range");
    }
    forest_.feature_count_ = last_feature + 1;
    forest_.output_count_ = outputs;
    if (head.contains("average_output")) {
      throw std::runtime_error("random forests (average_output) are not supported");
    }
    const std::string_view objective = Get(head, "objective");
    const std::string_view name = objective.substr(0, objective.find(' '));
    if (name == "binary") {
      forest_.objective_ = Objective::kBinary;
      const size_t at = objective.find("sigmoid:");
      if (at != std::string_view::npos) {
        forest_.sigmoid_ = ToNumber<double>(objective.substr(at + 8), "sigmoid");
      }
    } else if (name == "multiclass") {
      forest_.objective_ = Objective::kMulticlass;
    } else if (objective != "regression") {
      throw std::runtime_error("the objective '" + std::string(objective) +
                               "' is not supported; regression, binary and multiclass are");
    }
  }

  Tree ReadTree(const Section& section) const {
    Tree tree;
    const auto leaf_count = ToNumber<uint32_t>(Get(section, "num_leaves"), "num_leaves");
    if (leaf_count == 0) {
      throw std::runtime_error("num_leaves is 0");
    }
    tree.leaves = Numbers<double>(section, "leaf_value", leaf_count);
    if (section.contains("is_linear") && Get(section, "is_linear") != "0") {
      throw std::runtime_error("linear leaves are not supported");
    }
    if (leaf_count == 1) {
      return tree;
    }
    const size_t node_count = leaf_count - 1;
    const auto thresholds = Numbers<double>(section, "threshold", node_count);
    const auto features = Numbers<uint32_t>(section, "split_feature", node_count);
    const auto decisions = Numbers<uint32_t>(section, "decision_type", node_count);
    const auto left = Numbers<int32_t>(section, "left_child", node_count);
    const auto right = Numbers<int32_t>(section, "right_child", node_count);
    for (size_t i = 0; i < node_count; ++i) {
      const uint32_t missing = decisions[i] >> 2 & 3;
      if ((decisions[i] & 1) != 0 || missing > 2) {
        throw std::runtime_error("node " + std::to_string(i) +
                                 " is a categorical split, which is not supported");
      }
      if (features[i] >= forest_.feature_count_) {
        throw std::runtime_error("node " + std::to_string(i) + " splits feature " +
                                 std::to_string(features[i]) + " of " +
                                 std::to_string(forest_.feature_count_));
      }
      CheckChild(left[i], i, node_count);
      CheckChild(right[i], i, node_count);
      tree.nodes.push_back({thresholds[i], features[i], left[i], right[i],
                            static_cast<Missing>(missing), (decisions[i] & 2) != 0});
    }
    return tree;
  }

  // Children must follow their parents in the file, which also excludes cycles.
  static void CheckChild(int32_t child, size_t parent, size_t node_count) {
    const bool is_leaf = child < 0;
    const auto index = static_cast<size_t>(is_leaf ? ~child : child);
    if (is_leaf ? index > node_count : index <= parent || index >= node_count) {
      throw std::runtime_error("node " + std::to_string(parent) + " has a child " +
                               std::to_string(child) + " that cannot be");
    }
  }

  std::string_view text_;
  bool is_complete_ = false;
  Forest forest_;
};

Forest Forest::Parse(std::string_view text) { return Reader(text).Read(); }

double Forest::Tree::Predict(std::span<const float> features) const {
  if (nodes.empty()) {
    return leaves[0];
  }
  int32_t at = 0;
  while (at >= 0) {
    const Node& node = nodes[static_cast<size_t>(at)];
    double value = features[node.feature];
    if (std::isnan(value) && node.missing != Missing::kNan) {
      value = 0;
    }
    const bool is_missing = (node.missing == Missing::kNan && std::isnan(value)) ||
                            (node.missing == Missing::kZero && std::abs(value) <= kZero);
    const bool goes_left = is_missing ? node.missing_goes_left : value <= node.threshold;
    at = goes_left ? node.left : node.right;
  }
  return leaves[static_cast<size_t>(~at)];
}

void Forest::Predict(std::span<const float> features, std::span<float> output) const {
  std::vector<double> sums(output_count_, 0.0);
  for (size_t t = 0; t < trees_.size(); ++t) {
    sums[t % output_count_] += trees_[t].Predict(features);
  }
  double total = 0;
  double largest = sums[0];
  for (const double sum : sums) {
    largest = std::max(largest, sum);
  }
  for (double& sum : sums) {
    if (objective_ == Objective::kBinary) {
      sum = 1 / (1 + std::exp(-sigmoid_ * sum));
    } else if (objective_ == Objective::kMulticlass) {
      sum = std::exp(sum - largest);
    }
    total += sum;
  }
  for (size_t i = 0; i < output_count_; ++i) {
    output[i] =
        static_cast<float>(objective_ == Objective::kMulticlass ? sums[i] / total : sums[i]);
  }
}

}  // namespace forest
