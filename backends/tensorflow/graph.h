// SPDX-License-Identifier: Apache-2.0
// What the file of a model says of its graph, without the values of weights.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tensorflow_backend/program.h"

namespace nereid::tensorflow {

// A node of a graph.
struct Node {
  std::string name;
  std::string operation;
  std::vector<std::string> inputs;     // places, and with "^" before them nodes
  std::vector<std::string> functions;  // that its attributes name
  TensorInfo info;                     // of placeholders; the shape as far as the file has it
  uint64_t weight_bytes = 0;           // of a constant or a variable whose size the file has
};

// A graph: its nodes and, for each function, what its nodes use: operations and other functions.
struct Graph {
  std::vector<Node> nodes;
  std::map<std::string, std::set<std::string>> functions;
  uint64_t weight_bytes = 0;  // of constants and variables, also inside functions

  // The placeholders, which are what GraphDef has for inputs.
  std::map<std::string, TensorInfo> Placeholders() const;
  // The names of all other nodes.
  std::set<std::string> OtherNodes() const;
  // The names of nodes whose tensors no other node uses.
  std::set<std::string> LastNodes() const;
  // All operations on which these places depend, also inside functions.
  std::set<std::string> OperationsOf(const std::vector<std::string>& places) const;
};

// One of the graphs in a SavedModel.
struct MetaGraph {
  std::vector<std::string> tags;
  std::map<std::string, Signature> signatures;
  Graph graph;
  bool has_values = false;   // of variables, in files beside the graph
  bool has_init_op = false;  // an operation that is run when the graph is loaded
};

// "node:0" → "node".
std::string NodeOf(const std::string& place);

}  // namespace nereid::tensorflow
