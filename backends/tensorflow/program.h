// SPDX-License-Identifier: Apache-2.0
// Models of TensorFlow as the rest of the backend sees them: what files say of their tensors,
// graphs that were loaded, and requests that run them. None of the classes throws. runtime.cc has
// those that call TensorFlow.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"

namespace nereid::tensorflow {

// A tensor of a graph. Immutable.
struct TensorInfo {
  std::string place;  // where it is in the graph: "node" or "node:1"
  int type = 0;       // TensorFlow's
  bool has_rank = false;
  std::vector<int64_t> dims;  // -1 if variable
};

inline bool IsScalar(const TensorInfo& info) { return info.has_rank && info.dims.empty(); }

// The inputs and outputs of a model, by the names that a configuration has for them.
struct Signature {
  std::map<std::string, TensorInfo> inputs;
  std::map<std::string, TensorInfo> outputs;
};

// An input of one run. Everything is a view.
struct CallInput {
  bool is_present = false;
  std::span<const int64_t> shape;
  std::span<const char> data;
  std::span<const std::string_view> strings;  // instead of data, for BYTES
};

// An output of one run; views that are valid until Request::Clear.
struct CallOutput {
  std::span<const int64_t> shape;
  const char* data = nullptr;
  std::span<const std::string_view> strings;
  // Keeps `data` as it is for as long as it lives; null if it must be copied.
  std::shared_ptr<const void> keeper;
};

// The tensors that requests bring and take, in the order of the configuration. Immutable.
struct Bound {
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  // Whether the graph may change what outlives a run (a variable, a table, a queue). So it may keep
  // inputs, and change outputs of earlier runs.
  bool changes_state = false;
  // Whether it changes variables where they lie (those of TensorFlow 1), outputs of other runs
  // among them: requests that share a session take turns, from Run to Clear.
  bool changes_in_place = false;
};

// Runs a graph, one run at a time. Thread-compatible.
class Request {
 public:
  virtual ~Request() = default;
  // Computes the outputs for which `wanted` is not zero, perhaps others too.
  virtual backend::Error Run(std::span<const CallInput> inputs, std::span<const char> wanted) = 0;
  // Returns an output that the last run was to compute.
  virtual CallOutput Output(size_t o) = 0;
  // Gives the memory of the last run back, and the turn if requests take turns.
  virtual void Clear() = 0;
};

// What is loaded: files and options. Models that say the same share a session.
struct SessionSpec {
  bool is_graph_def = false;
  std::string path;
  std::vector<std::string> tags;
  std::string config;                 // a ConfigProto
  std::vector<std::string> init_ops;  // run once, in this order

  // Equal for equal specs.
  std::string Key() const;
};

// A graph in a session of TensorFlow. Thread-safe.
class Session {
 public:
  virtual ~Session() = default;
  // What the graph says of a place; nothing if it has no such tensor.
  virtual std::optional<TensorInfo> Find(const std::string& place) = 0;
  // The session outlives the request. REQUIRES: Find has something for every place.
  virtual std::unique_ptr<Request> NewRequest(const Bound& bound) = 0;
};

// TensorFlow. Thread-safe.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual backend::Result<std::shared_ptr<Session>> Load(const SessionSpec& spec) = 0;
  // Whether one of these operations may change what outlives a run (a variable, a table, a queue),
  // and so perhaps keep a tensor that it is given.
  virtual bool MayChangeState(const std::set<std::string>& operations) = 0;
  // Adds the operations in a library to those that graphs may have, once.
  virtual backend::Error LoadOperations(const std::string& library) = 0;
};

// Opens TensorFlow's library at the first call.
backend::Result<Runtime*> SharedRuntime();

}  // namespace nereid::tensorflow
