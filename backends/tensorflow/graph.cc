// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/graph.h"

#include <string_view>
#include <utility>

namespace nereid::tensorflow {

namespace {

bool IsPlaceholder(const Node& node) { return node.operation.starts_with("Placeholder"); }

}  // namespace

std::string NodeOf(const std::string& place) {
  const size_t first = place.starts_with('^') ? 1 : 0;
  return place.substr(first, place.find(':') - first);
}

std::map<std::string, TensorInfo> Graph::Placeholders() const {
  std::map<std::string, TensorInfo> found;
  for (const Node& node : nodes) {
    if (IsPlaceholder(node)) {
      found[node.name] = node.info;
    }
  }
  return found;
}

std::set<std::string> Graph::OtherNodes() const {
  std::set<std::string> names;
  for (const Node& node : nodes) {
    if (!IsPlaceholder(node)) {
      names.insert(node.name);
    }
  }
  return names;
}

std::set<std::string> Graph::LastNodes() const {
  std::set<std::string> names = OtherNodes();
  for (const Node& node : nodes) {
    for (const std::string& input : node.inputs) {
      names.erase(NodeOf(input));
    }
  }
  return names;
}

std::set<std::string> Graph::OperationsOf(const std::vector<std::string>& places) const {
  std::map<std::string_view, const Node*> by_name;
  for (const Node& node : nodes) {
    by_name[node.name] = &node;
  }
  std::set<std::string> operations;
  std::set<const Node*> seen;
  std::vector<std::string> next = places;
  std::vector<std::string> used;
  while (!next.empty()) {
    const std::string name = NodeOf(next.back());
    next.pop_back();
    const auto node = by_name.find(name);
    if (node != by_name.end() && seen.insert(node->second).second) {
      next.insert(next.end(), node->second->inputs.begin(), node->second->inputs.end());
      used.push_back(node->second->operation);
      used.insert(used.end(), node->second->functions.begin(), node->second->functions.end());
    }
  }
  // Names that are functions stand for what these use.
  std::set<std::string> called;
  while (!used.empty()) {
    const std::string name = std::move(used.back());
    used.pop_back();
    const auto function = functions.find(name);
    if (function == functions.end()) {
      operations.insert(name);
    } else if (called.insert(name).second) {
      used.insert(used.end(), function->second.begin(), function->second.end());
    }
  }
  return operations;
}

}  // namespace nereid::tensorflow
